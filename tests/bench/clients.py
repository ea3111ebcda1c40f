"""The programs that are measured, and how each is told to upload. How they are told to download is in downloads.py."""

import os
import sys
from dataclasses import dataclass
from pathlib import Path

import measure
from sink import clean_environment

HERE = Path(__file__).resolve().parent


@dataclass
class Client:
    """A program that moves what it is told to."""

    name: str
    # (job, service) -> command line
    command: object
    # service -> environment variables of its own
    environment: object = lambda _: {}
    # Its standard input stays open and silent, rather than being at its end.
    blocking_stdin: bool = False
    # Most rounds; None is as many as asked for. For those that take long.
    rounds: int | None = None

    def run(self, job, service, sample=True, extra=()):
        """Runs it and fails unless it succeeds."""
        command = [str(part) for part in [*self.command(job, service), *extra]]
        environment = clean_environment(**self.environment(service))
        if not self.blocking_stdin:
            cost = measure.run(command, environment, sample=sample)
        else:
            reading, writing = os.pipe()
            try:
                cost = measure.run(command, environment, reading, sample)
            finally:
                os.close(reading)
                os.close(writing)
        if cost.code:
            raise RuntimeError(f"{self.name} ended with {cost.code}: {(cost.err + cost.out).strip()[-500:]}")
        return cost


def blobjet(binary, place, name="blobjet", options=()):
    """Ours, at its defaults."""
    return Client(
        name,
        lambda job, sink: [binary, "copy", job.source, sink.signed, "--recursive", "--output-type", "json", *options],
        lambda sink: {"BLOBJET_STATE": str(place / "client-state"), **_certificate("SSL_CERT_FILE", sink)},
    )


def _certificate(variable, sink):
    return {variable: sink.certificate} if sink.certificate else {}


def _azcopy(program, place):
    def environment(sink):
        return {
            "HOME": str(place),
            "AZCOPY_LOG_LOCATION": str(place / "azcopy-log"),
            "AZCOPY_JOB_PLAN_LOCATION": str(place / "azcopy-plan"),
            "AZCOPY_DISABLE_SYSLOG": "true",
            **_certificate("SSL_CERT_FILE", sink),
        }

    # It cannot tell by itself that an IP address is a Blob service.
    plain = ["--recursive", "--from-to=LocalBlob"]
    tuned = [*plain, "--check-length=false", "--log-level=ERROR"]
    return [
        Client("AzCopy, tuned", lambda job, sink: [program, "copy", job.source, sink.signed, *tuned], environment, blocking_stdin=True),
        Client("AzCopy, defaults", lambda job, sink: [program, "copy", job.source, sink.signed, *plain], environment),
    ]


def _rclone(program, place):
    options = ["--azureblob-chunk-size=8Mi", "--azureblob-disable-checksum", "--ignore-checksum", "--no-check-dest", "--no-traverse"]
    options += ["--transfers=16", f"--config={place}/rclone.conf", "--cache-dir", place / "rclone-cache", "--log-level=ERROR"]

    def command(job, sink):
        # A folder's contents, not the folder: its name is part of the destination.
        into = job.source.name if job.source.is_dir() else ""
        return [program, "copy", job.source, f":azureblob:bench/{into}", f"--azureblob-sas-url={sink.signed}", *options]

    return Client("rclone", command, lambda sink: {"HOME": str(place), **_certificate("SSL_CERT_FILE", sink)})


def installed(peers, place, left_out):
    """The peers that are there, by the word that names them."""
    found = {}
    if "azcopy" not in left_out and (peers / "azcopy").exists():
        found["azcopy"], found["azcopy-defaults"] = _azcopy(peers / "azcopy", place)
    if "rclone" not in left_out and (peers / "rclone").exists():
        found["rclone"] = _rclone(peers / "rclone", place)

    def script(name, folder, file, rounds):
        return Client(
            name,
            lambda job, sink: [sys.executable, HERE / "peers" / file, job.source, sink.signed, *([sink.certificate] if sink.certificate else [])],
            lambda _: {"PYTHONPATH": str(peers / folder), "PYTHONDONTWRITEBYTECODE": "1"},
            rounds=rounds,
        )

    if "obstore" not in left_out and (peers / "obstore" / ".installed").exists():
        found["obstore"] = script("obstore", "obstore", "obstore_put.py", 2)
    if "javascript" not in left_out and (peers / "node" / ".installed").exists():
        found["javascript"] = Client(
            "JavaScript SDK",
            lambda job, sink: ["node", HERE / "peers" / "javascript_sdk.cjs", job.source, sink.signed],
            lambda sink: {"NODE_PATH": str(peers / "node" / "node_modules"), **_certificate("NODE_EXTRA_CA_CERTS", sink)},
            rounds=2,
        )
    if "python" not in left_out and (peers / "python" / ".installed").exists():
        found["python"] = script("Python SDK", "python", "python_sdk.py", 1)
    return found
