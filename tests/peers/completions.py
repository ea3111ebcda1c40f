"""The completion scripts in the shells they are for: zsh and fish complete commands, flags, values and files.

zsh is driven through a terminal as a person would, and asked what stands on its line; fish says what it would offer. bash is
among the Rust tests.
"""

import os
import pty
import select
import subprocess

import kit
from kit import check, eventually, same

PROMPT = "blobjet-test> "


class Zsh:
    """An interactive zsh that knows nothing but our script."""

    def __init__(self, place):
        self.line = place / "line"
        functions = place / "functions"
        functions.mkdir()
        (functions / "_blobjet").write_text(kit.blobjet("completion", "zsh").ok().out)
        start = f"""
PS1='{PROMPT}' RPS1= ; unsetopt beep prompt_sp
fpath=({functions} $fpath)
autoload -Uz compinit && compinit -u -d {place}/dump
show-line() {{ print -r -- "$BUFFER" > {self.line}.new && mv {self.line}.new {self.line} }}
zle -N show-line
bindkey '^T' show-line
"""
        (place / ".zshrc").write_text(start)
        (place / "photo.jpg").touch()
        self.process, self.terminal = self._start(place)
        self._read_until(PROMPT)

    @staticmethod
    def _start(place):
        ours, theirs = pty.openpty()
        environment = kit.clean_environment(ZDOTDIR=str(place), TERM="dumb", LC_ALL="C.UTF-8")
        process = subprocess.Popen(
            ["zsh", "-d", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, cwd=place, env=environment, start_new_session=True
        )
        os.close(theirs)
        return process, ours

    def _read_until(self, text):
        screen = b""
        while text.encode() not in screen:
            if not select.select([self.terminal], [], [], 60)[0]:
                raise AssertionError(f"zsh said only {screen[-300:]!r}")
            screen += os.read(self.terminal, 4096)

    def completed(self, typed, then):
        """What stands on the line once Tab was pressed after this, and it was gone on with."""
        # Ctrl-U empties the line, Ctrl-T shows it.
        os.write(self.terminal, b"\x15" + typed.encode() + b"\t" + then.encode() + b"\x14")
        eventually(self.line.exists, 60)
        line = self.line.read_text()
        self.line.unlink()
        return line.rstrip()

    def stop(self):
        """Ends it and waits for it."""
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)


def zsh():
    with kit.folder() as place:
        shell = Zsh(place)
        try:
            for typed, then, line in [
                ("blobjet lis", "", "blobjet list"),
                ("blobjet jobs res", "", "blobjet jobs resume"),
                # What can have a value gets a =, which goes when none is given.
                ("blobjet copy --recurs", " x", "blobjet copy --recursive x"),
                ("blobjet copy --overwrite ifS", "", "blobjet copy --overwrite ifSourceNewer"),
                ("blobjet copy --report ph", "", "blobjet copy --report photo.jpg"),
                ("blobjet copy ph", "", "blobjet copy photo.jpg"),
            ]:
                with check(f"zsh completes {typed}"):
                    same(shell.completed(typed, then), line, "line")
        finally:
            shell.stop()


def fish():
    with kit.folder() as place:
        script = place / "blobjet.fish"
        script.write_text(kit.blobjet("completion", "fish").ok().out)
        (place / "photo.jpg").touch()

        def offered(typed):
            ask = ["fish", "--no-config", "-c", "source $argv[1]; complete -C $argv[2]", str(script), typed]
            environment = kit.clean_environment(HOME=str(place), LC_ALL="C.UTF-8")
            ran = subprocess.run(ask, cwd=place, env=environment, capture_output=True, text=True, timeout=60, check=False)
            same((ran.returncode, ran.stderr), (0, ""), "code and what it said")
            return [line.split("\t")[0] for line in ran.stdout.splitlines()]

        for typed, wanted in [
            ("blobjet lis", ["list"]),
            ("blobjet jobs re", ["remove", "resume"]),
            ("blobjet copy --recurs", ["--recursive"]),
            ("blobjet copy --overwrite ifS", ["ifSourceNewer"]),
            ("blobjet copy --report ph", ["photo.jpg"]),
        ]:
            with check(f"fish completes {typed}"):
                same(sorted(offered(typed)), wanted, "offer")
        with check("fish offers commands and no files first"):
            commands = offered("blobjet ")
            assert "copy" in commands and "photo.jpg" not in commands, commands


if __name__ == "__main__":
    zsh()
    fish()
    kit.finish()
