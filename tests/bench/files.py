"""Makes the files to upload, the same every time in sizes and names, with random content; and looks at those that were downloaded."""

import hashlib
import os
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

KIB = 1024
MIB = 1024**2
GIB = 1024**3
# Files in one folder, where there are many.
IN_A_FOLDER = 1000


@dataclass
class Job:
    """Something to upload: a file, or a folder of `count` files that have `size` bytes together."""

    source: Path
    count: int
    size: int

    @property
    def is_large(self):
        """Whether its cost is told by the byte rather than by the file."""
        return self.size >= self.count * MIB

    def remove(self):
        """Takes it off the disk."""
        if self.source.is_dir():
            shutil.rmtree(self.source)
        else:
            self.source.unlink()


def room_for(place, size):
    """Fails where so many bytes have no room in the tmpfs or in memory."""
    free = shutil.disk_usage(place).free
    with open("/proc/meminfo", encoding="ascii") as meminfo:
        available = next(int(line.split()[1]) for line in meminfo if line.startswith("MemAvailable")) * KIB
    if min(free, available) < size * 1.1 + 512 * MIB:
        raise RuntimeError(f"{size / GIB:.1f} GiB of files do not fit into {place}: {free / GIB:.1f} GiB free, {available / GIB:.1f} GiB of memory")


def _fill(path, size):
    with open(path, "wb", buffering=0) as file:
        while size:
            size -= file.write(os.urandom(min(size, 4 * MIB)))


def one(place, size):
    """One file."""
    room_for(place, size)
    path = place / "one.bin"
    _fill(path, size)
    return Job(path, 1, size)


def of_sizes(place, sizes):
    """A folder with a file for each size, a thousand to a folder where there are more than that."""
    pages = sum(max(size, 1) + 4095 & ~4095 for size in sizes)
    room_for(place, pages)
    folder = place / "files"
    small = os.urandom(2 * MIB)
    for at, size in enumerate(sizes):
        inner = folder / f"{at // IN_A_FOLDER:04}" if len(sizes) > 20 * IN_A_FOLDER else folder
        if at % IN_A_FOLDER == 0:
            inner.mkdir(parents=True, exist_ok=True)
        path = f"{inner}/{at:07}.bin"
        if size > MIB:
            _fill(path, size)
            continue
        # A piece of one random megabyte or two: different content in each, at the price of one copy.
        start = at * 509 % MIB
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        os.write(descriptor, small[start : start + size])
        os.close(descriptor)
    return Job(folder, len(sizes), sum(sizes))


def holds(folder):
    """Number and bytes of all files under a folder."""
    sizes = [os.path.getsize(f"{inner}/{name}") for inner, _, names in os.walk(folder) for name in names]
    return len(sizes), sum(sizes)


def checksum(folder, name):
    """SHA-256 over names and contents of the file or the folder of that name."""
    whole, root = hashlib.sha256(), folder / name
    for path in sorted(path for path in root.rglob("*") if path.is_file()) if root.is_dir() else [root]:
        with open(path, "rb") as file:
            content = hashlib.file_digest(file, "sha256")
        whole.update(f"{path.relative_to(folder)}\0".encode() + content.digest())
    return whole.hexdigest()


def log_normal(count, outlier):
    """Sizes as they are found in the wild: median 4 KiB, mean about 14 KiB, and in their midst one file that is much larger."""
    source = random.Random(20260115)
    sizes = [max(1, min(64 * MIB, int(source.lognormvariate(8.318, 1.6)))) for _ in range(count - 1)]
    sizes.insert(count // 2, outlier)
    return sizes


def equal(sizes):
    """As many sizes with the same sum, all alike."""
    each, rest = divmod(sum(sizes), len(sizes))
    return [each + (at < rest) for at in range(len(sizes))]
