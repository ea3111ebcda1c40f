"""The floor under L1: a program of our own that only writes, built here from floor.rs."""

import subprocess
from pathlib import Path

from clients import Client

SOURCE = Path(__file__).resolve().parent / "floor.rs"
THREADS = 4


def build(folder):
    """Builds it; the program's path, or None where there is no compiler."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / "floor"
    if not program.exists() or program.stat().st_mtime < SOURCE.stat().st_mtime:
        try:
            subprocess.run(["rustc", "-O", "--edition", "2024", "-o", program, SOURCE], check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return None
    return program


def clients(bench):
    """Both ways to write, as clients."""
    if bench.floor is None:
        return []
    return [
        Client(f"floor, {how}", lambda job, sink, how=how: [bench.floor, how, job.source, sink.signed, THREADS])
        for how in ("warm", "sendfile")
    ]
