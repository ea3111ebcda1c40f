"""Runs one program and says what it cost: wall time, processor time, memory by kind, and when its bytes went over the wire.

Processor time comes from wait4 and covers all threads, user and system; on loopback the kernel does a share of the receiving
side's work in the sender's time, the same for every client. Memory is sampled from /proc every few milliseconds, because
the kernel keeps a peak only for the sum: anonymous memory is what the program allocated, mapped memory is pages of files
(on tmpfs the kernel calls them shared memory).
"""

import os
import subprocess
import threading
import time
from dataclasses import dataclass, field

import network

SAMPLE_EVERY_S = 0.01
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass
class Cost:
    """What one run of a program cost."""

    code: int
    wall_s: float
    user_s: float
    system_s: float
    peak_anonymous_bytes: int
    peak_mapped_bytes: int
    peak_resident_bytes: int
    out: str
    err: str
    # (seconds from the start, bytes on the wire since then), in order; empty where the wire is shared with others.
    passed: list = field(default_factory=list)

    @property
    def cpu_s(self):
        """User and system time together."""
        return self.user_s + self.system_s


def memory(pid):
    """Anonymous, mapped and peak resident memory of a process in bytes; None once it is gone."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            fields = dict(line.split(":", 1) for line in status)
        kib = {name: int(fields[name].split()[0]) for name in ("RssAnon", "RssFile", "RssShmem", "VmHWM")}
    except (OSError, KeyError, ValueError):
        return None
    return kib["RssAnon"] * 1024, (kib["RssFile"] + kib["RssShmem"]) * 1024, kib["VmHWM"] * 1024


def cpu_of(pid):
    """User and system time that a running process has used, seconds."""
    with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def run(command, environment, stdin=subprocess.DEVNULL, sample=True):
    """Runs a command to its end. Its output is collected in files, so that no reader of ours takes part in the race."""
    peaks, passed = [0, 0, 0], []
    with open(os.memfd_create("out"), "r+b") as out, open(os.memfd_create("err"), "r+b") as err:
        before = network.bytes_passed()
        started = time.perf_counter()
        process = subprocess.Popen(command, env=environment, stdin=stdin, stdout=out, stderr=err)
        ended = threading.Event()

        def watch():
            while (now := memory(process.pid)) is not None and not ended.wait(SAMPLE_EVERY_S):
                peaks[:] = map(max, peaks, now)
                if before is not None:
                    passed.append((time.perf_counter() - started, network.bytes_passed() - before))

        watcher = threading.Thread(target=watch, daemon=True)
        if sample:
            watcher.start()
        try:
            _, status, usage = os.wait4(process.pid, 0)
        except BaseException:
            process.kill()
            process.wait()
            raise
        finally:
            ended.set()
        wall = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if sample:
            watcher.join()
        if before is not None:
            passed.append((wall, network.bytes_passed() - before))
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return Cost(process.returncode, wall, usage.ru_utime, usage.ru_stime, *peaks, *texts, passed)
