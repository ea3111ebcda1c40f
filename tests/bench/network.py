"""A network of the bench's own: loopback that nothing else uses, cubic where it may be had, and what has passed over it."""

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

CONGESTION = Path("/proc/sys/net/ipv4/tcp_congestion_control")
# Set once we are in a network of our own: the program to measure, which was built outside.
INSIDE = "BLOBJET_BENCH_PROGRAM"


def inside():
    """The program to measure, if this is the process in the bench's own network or the one that found there can be none."""
    return os.environ.get(INSIDE)


def is_own():
    """Whether loopback carries nothing but the bench."""
    return os.environ.get(INSIDE + "_NETWORK") == "own"


@contextlib.contextmanager
def _cubic_for_a_moment():
    """Makes cubic the default for the network born meanwhile: it inherits the default, and may not choose one itself."""
    before = CONGESTION.read_text(encoding="ascii")
    try:
        CONGESTION.write_text("cubic", encoding="ascii")
    except OSError:
        yield
        return
    try:
        yield
    finally:
        CONGESTION.write_text(before, encoding="ascii")


def enter(binary):
    """Goes on in a network of its own, where there can be one; ends this process when the one inside has ended."""
    rights = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
    can = shutil.which("unshare") and not subprocess.run(["unshare", *rights, "--net", "true"], stderr=subprocess.DEVNULL, check=False).returncode
    if not can:
        os.environ[INSIDE] = binary
        return
    ours = os.readlink("/proc/self/ns/net")
    environment = {**os.environ, INSIDE: binary, INSIDE + "_NETWORK": "own"}
    with _cubic_for_a_moment():
        child = subprocess.Popen(["unshare", *rights, "--net", sys.executable, *sys.argv], env=environment)
        until = time.monotonic() + 5
        while time.monotonic() < until and child.poll() is None and os.readlink(f"/proc/{child.pid}/ns/net") == ours:
            time.sleep(0.001)
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the one inside gets it too, and cleans up
    sys.exit(child.wait())


def loopback_up():
    """Brings `lo` up in the new network."""
    if not is_own():
        return
    get_flags, set_flags, up = 0x8913, 0x8914, 1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP of linux/sockios.h and linux/if.h
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        answer = fcntl.ioctl(any_socket, get_flags, struct.pack("16sH14x", b"lo", 0))
        flags = struct.unpack("16sH14x", answer)[1]
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sH14x", b"lo", flags | up))


def bytes_passed():
    """Bytes that loopback has carried so far, both directions, headers included; None where others use it too."""
    if not is_own():
        return None
    with open("/proc/net/dev", encoding="ascii") as devices:
        for line in devices:
            name, _, counts = line.partition(":")
            if name.strip() == "lo":
                return int(counts.split()[0])
    return None


@contextlib.contextmanager
def link_of(bits_per_s):
    """Loopback as slow as a link, both directions together; yields False where it cannot be had."""
    if not is_own() or not shutil.which("tc"):
        yield False
        return
    # The largest packet of loopback is 64 KiB, and a bucket smaller than a packet lets nothing through.
    rule = ["rate", f"{bits_per_s}bit", "burst", "256kb", "latency", "20ms"]
    if subprocess.run(["tc", "qdisc", "add", "dev", "lo", "root", "tbf", *rule], capture_output=True, check=False).returncode:
        yield False
        return
    try:
        yield True
    finally:
        subprocess.run(["tc", "qdisc", "del", "dev", "lo", "root"], check=False)


def congestion_control():
    """The one in use, and whose setting it is."""
    whose = "a network namespace of the bench" if is_own() else "the machine's setting"
    return f"{CONGESTION.read_text(encoding='ascii').strip()} ({whose})"
