"""What the peer scripts share: named checks, stores to talk to, our program, made-up data.

A script calls `check(name)` as a context manager for every fact it wants to see and ends with `finish()`. Each check prints
one line, `ok NAME` or `FAIL NAME: why`; `tests/run` counts them. A check that fails does not end the script.

Every store started here listens on a port of its own, keeps its data in a folder of its own, and is ended by its process id
when the script ends, however it ends.
"""

import contextlib
import hashlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
PEERS = TARGET / "peers"
BLOBJET = Path(os.environ.get("BLOBJET", TARGET / "debug" / "blobjet")).resolve()
AZCOPY = PEERS / "azcopy"
AZURITE = PEERS / "node" / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"
sys.path.insert(0, str(PEERS / "python"))

ACCOUNT = "devstoreaccount1"
# The emulators' published account key, the same everywhere; it opens nothing but a local store.
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="

# Ends by way of the `finally`s, which stop the stores and remove the folders.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

_failed = 0
_passed = 0


@contextlib.contextmanager
def check(name):
    """One named fact: passes if its body ends without an exception."""
    global _failed, _passed
    try:
        yield
    except Exception as error:  # any failure is a result here
        _failed += 1
        where = traceback.extract_tb(error.__traceback__)[-1]
        for frame in reversed(traceback.extract_tb(error.__traceback__)):
            if frame.filename.startswith(str(ROOT / "tests")):
                where = frame
                break
        why = " ".join(f"{type(error).__name__}: {error}".split())
        print(f"FAIL {name}: {why[:600]} (line {where.lineno})", flush=True)
    else:
        _passed += 1
        print(f"ok {name}", flush=True)


def same(got, wanted, what="value"):
    """Fails, saying what and how, unless the two are equal."""
    if got == wanted:
        return
    if isinstance(got, (bytes, bytearray)) and isinstance(wanted, (bytes, bytearray)):
        at = next((i for i, (a, b) in enumerate(zip(got, wanted)) if a != b), min(len(got), len(wanted)))
        raise AssertionError(f"{what}: {len(got)} bytes, wanted {len(wanted)}, first difference at {at}")
    raise AssertionError(f"{what}: got {got!r}, wanted {wanted!r}")


@contextlib.contextmanager
def refused(kind, code=None, status=None):
    """Fails unless the body raises `kind`, an Azure SDK error, with this error code and status."""
    try:
        yield
    except kind as error:
        if code is not None:
            got = getattr(error.error_code, "value", error.error_code)
            same(got, code, "error code")
        if status is not None:
            same(error.status_code, status, "status")
    else:
        raise AssertionError(f"went through, wanted {kind.__name__} {code or ''}")


def failures():
    """How many checks have failed so far."""
    return _failed


def finish():
    """Ends the script: exit code 1 if any check failed."""
    print(f"{Path(sys.argv[0]).stem}: {_passed} ok, {_failed} failed", flush=True)
    sys.exit(1 if _failed else 0)


def data(size, seed=0):
    """`size` bytes that do not repeat, the same for the same seed."""
    return random.Random(f"{size} {seed}").randbytes(size)


def md5(content):
    """MD5 of bytes."""
    return hashlib.md5(content).digest()


@contextlib.contextmanager
def folder():
    """A folder that is gone afterwards."""
    path = tempfile.mkdtemp(prefix="blobjet-peer-")
    try:
        yield Path(path)
    finally:
        shutil.rmtree(path, ignore_errors=True)


class Store:
    """A running Blob service: its address, and what a client needs to know to use it."""

    def __init__(self, process, url, lines):
        self.process, self.url, self.lines = process, url, lines
        self.port = int(re.search(r":(\d+)", url.removeprefix("http:")).group(1))
        self.connection_string = (
            f"DefaultEndpointsProtocol=http;AccountName={ACCOUNT};AccountKey={KEY};BlobEndpoint={url};"
        )

    def stop(self, how=signal.SIGTERM):
        """Ends it and waits for it; a second call does nothing."""
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


def clean_environment(**more):
    """This environment without anything that names an account or a proxy."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.upper().startswith(("AZURE_", "AZCOPY_", "AZURITE_", "BLOBJET_")) and not name.upper().endswith("_PROXY")
    }
    return {**kept, **more}


def _start(command, pattern, **environment):
    """Starts a server and waits until a line of its output matches; its output is kept for when it fails."""
    process = subprocess.Popen(
        [str(part) for part in command],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=clean_environment(**environment),
        text=True,
        errors="replace",
    )
    lines, found, ended = [], [], threading.Event()

    def read():
        for line in process.stdout:
            lines.append(line.rstrip())
            del lines[:-200]
            if not found and (match := re.search(pattern, line)):
                found.append(match.group(1))
                ended.set()
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    ended.wait(60)
    if not found:
        process.kill()
        process.wait()
        raise RuntimeError(f"{command[0]} did not start: {lines[-5:]}")
    return process, found[0], lines


@contextlib.contextmanager
def blobjet_serve(*options):
    """`blobjet serve` with these options, on a free port."""
    store = start_blobjet_serve(*options)
    try:
        yield store
    finally:
        store.stop()


def start_blobjet_serve(*options):
    """`blobjet serve` with these options, on a free port, for the caller to stop."""
    process, url, lines = _start([BLOBJET, "serve", "--port", "0", *options], r"http://127\.0\.0\.1:(\d+)")
    return Store(process, f"http://127.0.0.1:{url}/{ACCOUNT}", lines)


@contextlib.contextmanager
def azurite(*options):
    """Azurite's blob service on a free port, in memory, and as strict as it comes unless options say otherwise."""
    process, port, lines = _start(
        ["node", AZURITE, "--blobPort", "0", "--inMemoryPersistence", "--disableTelemetry", *options],
        r"http://127\.0\.0\.1:(\d+)",
    )
    store = Store(process, f"http://127.0.0.1:{port}/{ACCOUNT}", lines)
    try:
        yield store
    finally:
        store.stop()


class Ran:
    """What a run of a program left behind."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    def ok(self):
        """Itself, if the exit code was 0."""
        if self.code != 0:
            raise AssertionError(f"exit code {self.code}: {self.err.strip()[-300:]} {self.out.strip()[-300:]}")
        return self


def blobjet(*arguments, stdin=subprocess.DEVNULL, timeout=120, **environment):
    """Runs our program with a state folder of its own and no account in the environment but what is given."""
    with folder() as state:
        done = subprocess.run(
            [str(BLOBJET), *(a if isinstance(a, bytes) else str(a) for a in arguments)],
            **({"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}),
            capture_output=True,
            timeout=timeout,
            env=clean_environment(BLOBJET_STATE=str(state), **environment),
            check=False,
        )
    return Ran(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def key_environment():
    """The environment that gives our program the emulators' account and key."""
    return {"AZURE_STORAGE_ACCOUNT": ACCOUNT, "AZURE_STORAGE_KEY": KEY}


def eventually(what, seconds=10):
    """Waits until `what()` is true."""
    until = time.monotonic() + seconds
    while not what():
        if time.monotonic() > until:
            raise AssertionError(f"not so after {seconds} s")
        time.sleep(0.05)


@contextlib.contextmanager
def store(kind):
    """A store by its word: `memory` and `dir` are ours; `azurite` shows whether a script is right about the protocol."""
    if kind == "azurite":
        with azurite("--skipApiVersionCheck") as started:
            yield started
    elif kind == "memory":
        with blobjet_serve("--memory") as started:
            yield started
    else:
        with folder() as place, blobjet_serve("--dir", place) as started:
            yield started


def stores():
    """The kinds of store a client of ours is tried on: PEER_STORES=azurite tries the scripts themselves."""
    return os.environ.get("PEER_STORES", "memory dir").split()


# Every printable ASCII character of a blob name stands in one of these, except `\\`, which the service takes for `/`.
ASCII_NAMES = [
    "a%zz.txt",
    "abc.%22",
    "%2F",
    "%41",
    "[test].txt",
    "-dash",
    "--flag=x",
    " leading space",
    "trailing space ",
    "a b+c&d=e;f,g.txt",
    "bang!hash#dollar$percent%and&.txt",
    "quote'double\"star*paren().txt",
    "colon:less<equal=more>ask?at@.txt",
    "caret^under_back`brace{bar|}tilde~.txt",
    "0123456789",
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "abcdefghijklmnopqrstuvwxyz",
    ".hidden",
    "deep/er/and/deeper/still.txt",
]
ODD_NAMES = [
    *ASCII_NAMES,
    "trailing dot.",
    "emoji \N{ROCKET}.bin",
    "nfc-\u00e9.txt",
    "nfd-e\u0301.txt",
    "\u65e5\u672c\u8a9e/\u30d5\u30a1\u30a4\u30eb.txt",
    "\u00fcml\u00e4ut & \u00df.txt",
]


def names_at_the_limit():
    """Names that are just allowed: 1,024 characters, 254 segments, a component of 255 bytes (the file system's limit)."""
    return [
        "/".join(["n" * 203] * 5) + "/" + "n" * 4,
        "/".join("s" * 254),
        "c" * 255,
    ]
