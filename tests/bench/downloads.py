"""Downloads: how each client is told to, one of them checked and told in figures, and the rounds of a workload.

All clients fetch from one service, which has the blobs in its memory: reading costs it no system call, and no client waits for a
disk. What arrived is counted after each run, its content compared once for each client; both outside of the measured time.
"""

import shutil
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import files
from clients import HERE
from rounds import figures_of, take_turns
from sink import Origin


@dataclass(frozen=True)
class Where:
    """Where bytes go."""

    what: str
    dropped: bool


FILES = Where("into files on a tmpfs", False)
NOWHERE = Where("dropped as it comes", True)


@dataclass
class Fetch:
    """What to download: a blob or a folder of blobs, in the terms of the `Job` that brought them there, and where to."""

    name: str
    is_folder: bool
    count: int
    size: int
    is_large: bool
    checksum: str
    # None: nowhere.
    folder: Path | None


def _blobjet(binary):
    def command(fetch, origin):
        return [binary, "copy", origin.at(fetch.name), fetch.folder or "null:", *_recursive(fetch), "--output-type", "json"]

    return command


def _recursive(fetch):
    return ["--recursive"] if fetch.is_folder else []


def _azcopy(program, *options):
    def command(fetch, origin):
        return [program, "copy", origin.at(fetch.name), fetch.folder or "/dev/null", *_recursive(fetch), "--from-to=BlobLocal", *options]

    return command


def _rclone(program, place):
    def command(fetch, origin):
        options = [f"--azureblob-sas-url={origin.signed}", f"--config={place}/rclone.conf", "--cache-dir", place / "rclone-cache", "--log-level=ERROR"]
        source = f":azureblob:bench/{fetch.name}"
        if fetch.folder is None:
            # One request after the other: it has no other way to drop what it reads.
            return [program, "cat", source, "--discard", *options]
        into = fetch.folder / fetch.name if fetch.is_folder else fetch.folder
        fast = ["--ignore-checksum", "--no-check-dest", "--no-traverse", "--transfers=16", "--multi-thread-streams=8"]
        return [program, "copy", source, into, *fast, *options]

    return command


def _obstore(fetch, origin):
    certificate = [origin.certificate] if origin.certificate else []
    return [sys.executable, HERE / "peers" / "obstore_get.py", origin.signed, fetch.name, fetch.folder or "", *certificate]


def clients(bench):
    """Ours and the peers that are there, told to download."""
    commands = {
        "azcopy": _azcopy(bench.programs / "azcopy", "--check-length=false", "--log-level=ERROR"),
        "azcopy-defaults": _azcopy(bench.programs / "azcopy"),
        "rclone": _rclone(bench.programs / "rclone", bench.place),
        "obstore": _obstore,
    }
    peers = [replace(bench.peers[word], command=command) for word, command in commands.items() if word in bench.peers]
    return [replace(bench.ours, command=_blobjet(bench.binary)), *peers]


def turns(bench, name, make, tls, where):
    """Rounds of downloads of what `make` makes. Client's name -> figures."""
    with Origin(bench.binary, bench.place, tls) as origin:
        fetch = _fill(bench, origin, make(), where)
        compared = set()

        def turn(client):
            return _once(bench, client, origin, fetch, compared)

        return take_turns(bench, name, clients(bench), bench.options.rounds, turn)


def _fill(bench, origin, job, where):
    """Puts a job's files into the service and removes them."""
    # Once more than they have taken: while the service is filled it is here and there, later there and where clients put it.
    files.room_for(bench.place, job.size)
    bench.ours.run(job, origin, sample=False)
    if origin.holds() != (job.count, job.size):
        raise RuntimeError("what is to be downloaded did not arrive at the service")
    name, is_folder = job.source.name, job.source.is_dir()
    folder = None if where.dropped else bench.place / "arrived"
    fetch = Fetch(name, is_folder, job.count, job.size, job.is_large, files.checksum(bench.place, name), folder)
    job.remove()
    return fetch


def _once(bench, client, origin, fetch, compared):
    """One download, checked; its figures by name. `compared` are the clients whose bytes were looked at already."""
    if fetch.folder:
        fetch.folder.mkdir()
    try:
        before, used = origin.so_far(), origin.cpu_s()
        cost = client.run(fetch, origin)
        used, after = origin.cpu_s() - used, origin.so_far()
        _check(client, cost, fetch, compared)
    finally:
        if fetch.folder:
            shutil.rmtree(fetch.folder)
    if after["tls"]:
        bench.ciphers["downloads"] = " and ".join(after["tls"])
    figures = figures_of(fetch, cost, "service", used, after["requests"] - before["requests"])
    figures["refused"] = after["refused"] - before["refused"]
    return figures


def _check(client, cost, fetch, compared):
    """Fails unless everything arrived."""
    if cost.passed and cost.passed[-1][1] < fetch.size:
        raise RuntimeError(f"{client.name}: {cost.passed[-1][1]} bytes came over the wire, fewer than the blobs have")
    if not fetch.folder:
        return
    held = files.holds(fetch.folder)
    if held != (fetch.count, fetch.size):
        raise RuntimeError(f"{client.name}: {held} files and bytes arrived, not {(fetch.count, fetch.size)}")
    if client.name not in compared:
        if files.checksum(fetch.folder, fetch.name) != fetch.checksum:
            raise RuntimeError(f"{client.name}: what arrived is not what is there")
        compared.add(client.name)
