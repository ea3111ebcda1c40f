"""`blobjet serve`: as a sink, one for each upload, so that what it counted is that upload's; and as an origin of downloads."""

import json
import os
import re
import signal
import subprocess

import measure


def clean_environment(**more):
    """This environment without accounts, proxies and certificates."""
    unwanted = r"(AZURE|AZCOPY|BLOBJET|RCLONE)_|.*_proxy$|SSL_CERT_|REQUESTS_CA_BUNDLE|NODE_EXTRA_CA_CERTS"
    kept = {k: v for k, v in os.environ.items() if not re.match(unwanted, k, re.IGNORECASE)}
    return {**kept, **more}


class Sink:
    """A running service with one container, which throws away what it gets. Leaving it ends the process."""

    KEEPS = "--discard"

    def __init__(self, binary, place, tls=False, faults=()):
        self.binary = binary
        self.environment = clean_environment(BLOBJET_STATE=str(place / "state"))
        options = [*(["--tls"] if tls else []), *(part for fault in faults for part in ("--fault", fault))]
        self.process = subprocess.Popen(
            [binary, "serve", self.KEEPS, "--port", "0", "--output-type", "json", *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=self.environment, text=True,
        )  # fmt: skip
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"blobjet serve {' '.join(options)} did not start")
        serving = json.loads(line)
        self.certificate = serving.get("certificate")
        self.environment["AZURE_STORAGE_CONNECTION_STRING"] = serving["connection_string"]
        if self.certificate:
            self.environment["SSL_CERT_FILE"] = self.certificate
        self.container = f"{serving['url']}/bench"
        self.cpu_before_s = 0.0
        try:
            self._ask("make", self.container)
            self.signed = self._ask("sas", self.container, "--permissions", "rcwdl", "--expiry", "24h").strip()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def _ask(self, *command):
        """Runs our own program with the account's key."""
        ran = subprocess.run([self.binary, *command], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if ran.returncode:
            raise RuntimeError(f"blobjet {command[0]}: {ran.stderr.strip()[-500:]}")
        return ran.stdout

    def cpu_s(self):
        """Processor time it has used so far."""
        return measure.cpu_of(self.process.pid)

    def holds(self):
        """Number and bytes of the blobs, as it lists them."""
        out = self._ask("list", self.container, "--output-type", "json")
        totals = json.loads(out[out.rstrip().rfind("\n") + 1 :])
        return totals["count"], totals["bytes"]

    def so_far(self):
        """What it has counted: requests but for the one that made the container, bytes of their bodies, how many were refused, TLS."""
        self.process.send_signal(signal.SIGUSR1)
        event = json.loads(self.process.stdout.readline())
        parts = event.get("operations", [])
        return {
            "requests": event["requests"] - 1,
            "body bytes": sum(part["body_bytes"] for part in parts),
            "refused": sum(part["refused"] for part in parts),
            "tls": event.get("tls", []),
        }

    def stop(self):
        """Ends it."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.process.communicate(timeout=60)


class Origin(Sink):
    """A running service that keeps what it gets in its memory, and serves all downloads of a workload: filling one for each would
    take longer than they do."""

    KEEPS = "--memory"

    def at(self, name):
        """The URL of a blob or a folder, with the SAS."""
        return f"{self.container}/{name}?{self.signed.partition('?')[2]}"
