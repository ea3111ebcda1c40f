"""AzCopy at work against our emulator, with a SAS: up in one request and in blocks, list, down, compare, sync, remove.

PEER_STORES=azurite runs the same checks against Azurite, which shows whether they ask for the right things.
"""

import contextlib
import datetime
import json
import os
import subprocess

import kit
from kit import data, same

from azure.storage.blob import BlobServiceClient, ContainerSasPermissions, generate_container_sas

LATER = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)


@contextlib.contextmanager
def open_pipe():
    """A standard input that neither ends nor says anything: AzCopy watches it, and burns time on one at its end."""
    reading, writing = os.pipe()
    try:
        yield reading
    finally:
        os.close(reading)
        os.close(writing)


class Peer:
    """One store, and AzCopy with folders of its own."""

    def __init__(self, kind, store, place):
        self.kind, self.url, self.place = kind, store.url, place
        self.client = BlobServiceClient.from_connection_string(store.connection_string)
        self.count = 0

    def check(self, name):
        """A check named after the store."""
        return kit.check(f"azcopy, {self.kind}: {name}")

    def container(self):
        """A new container and a function from a blob's place in it to a URL with a SAS."""
        self.count += 1
        container = self.client.create_container(f"box{self.count}")
        permission = ContainerSasPermissions.from_string("rcwdl")
        sas = generate_container_sas(
            kit.ACCOUNT, container.container_name, account_key=kit.KEY, permission=permission, expiry=LATER
        )
        return container, lambda path="": f"{self.url}/{container.container_name}{path}?{sas}"

    def run(self, *arguments, expect=0, **environment):
        """Runs AzCopy; returns its messages, one parsed line each."""
        with open_pipe() as stdin:
            ran = subprocess.run(
                [kit.AZCOPY, *map(str, arguments), "--output-type=json", "--log-level=ERROR"],
                stdin=stdin,
                capture_output=True,
                text=True,
                timeout=120,
                check=False,
                env=kit.clean_environment(
                    HOME=str(self.place),
                    AZCOPY_LOG_LOCATION=str(self.place / "log"),
                    AZCOPY_JOB_PLAN_LOCATION=str(self.place / "plan"),
                    AZCOPY_DISABLE_SYSLOG="true",
                    **environment,
                ),
            )
        said = (ran.stdout + ran.stderr).strip()
        if ran.returncode != expect:
            raise AssertionError(f"exit code {ran.returncode}, wanted {expect}: {said[-500:]}")
        lines = []
        for line in ran.stdout.splitlines():
            with contextlib.suppress(ValueError):
                lines.append(json.loads(line))
        return lines

    def job(self, *arguments, done, **more):
        """Runs a transfer and fails unless it says that exactly so many were done and none failed."""
        lines = self.run(*arguments, **more)
        ends = [json.loads(line["MessageContent"]) for line in lines if line.get("MessageType") == "EndOfJob"]
        same(len(ends), 1, "summaries")
        end = {key: int(ends[0][key]) for key in ("TransfersCompleted", "TransfersFailed", "TransfersSkipped")}
        same(end, {"TransfersCompleted": done, "TransfersFailed": 0, "TransfersSkipped": 0}, "summary")


def read_tree(root):
    """Files below a folder as name -> bytes."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def read_tree(root):
    """Files below a folder as name -> bytes."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def whole(peer):
    container, url = peer.container()
    with kit.folder() as root:
        for size in (0, 1, 1000, 300_000, 3 * 1024 * 1024 + 1):
            with peer.check(f"one file of {size} bytes up and down, in blocks of 256 KiB"):
                content = data(size, 1)
                (root / "file").write_bytes(content)
                up = ["copy", root / "file", url(f"/size-{size}"), "--from-to=LocalBlob", "--block-size-mb=0.25"]
                peer.job(*up, "--put-blob-size-mb=0.25", "--put-md5", done=1)
                same(container.download_blob(f"size-{size}").readall(), content, "what the SDK reads")
                blocks = len(container.get_blob_client(f"size-{size}").get_block_list("committed")[0])
                same(blocks, 0 if size <= 256 * 1024 else -(-size // (256 * 1024)), "blocks")
                down = ["copy", url(f"/size-{size}"), root / f"back-{size}", "--from-to=BlobLocal", "--block-size-mb=0.25"]
                peer.job(*down, "--check-md5=FailIfDifferentOrMissing" if size else "--check-md5=NoCheck", done=1)
                same((root / f"back-{size}").read_bytes(), content, "what AzCopy reads")


def sizes(peer):
    container, url = peer.container()
    block = 256 * 1024
    flags = ["--block-size-mb=0.25", "--recursive"]
    with kit.folder() as root, peer.check("sizes 0, 1, b-1, b, b+1, 2b and many blocks up and down, with MD5"):
        files = {f"size-{n}": data(n, 1) for n in (0, 1, block - 1, block, block + 1, 2 * block, 13 * block + 5)}
        (root / "sizes").mkdir()
        for name, content in files.items():
            (root / "sizes" / name).write_bytes(content)
        up = ["copy", root / "sizes", url(), "--from-to=LocalBlob", "--as-subdir=false", "--put-blob-size-mb=0.25", "--put-md5"]
        peer.job(*up, *flags, done=len(files))
        for name, content in files.items():
            blob = container.get_blob_client(name)
            same(blob.download_blob().readall(), content, f"{name}, read by the SDK")
            blocks = len(blob.get_block_list("committed")[0])
            same(blocks, 0 if len(content) <= block else -(-len(content) // block), f"blocks of {name}")
        down = ["copy", url("/*"), root / "back", "--from-to=BlobLocal", "--check-md5=FailIfDifferentOrMissing"]
        peer.job(*down, *flags, done=len(files))
        same(read_tree(root / "back"), files, "tree")
    with kit.folder() as root, peer.check("one file up and down"):
        content = data(1_000_000, 2)
        (root / "file").write_bytes(content)
        peer.job("copy", root / "file", url("/dir/to"), "--from-to=LocalBlob", done=1)
        peer.job("copy", url("/dir/to"), root / "back", "--from-to=BlobLocal", done=1)
        same((root / "back").read_bytes(), content, "content")


def trees(peer):
    container, url = peer.container()
    # Names that AzCopy itself gets through: it takes `%` sequences in local names for its own escapes.
    names = [n for n in kit.ODD_NAMES if "%" not in n and "*" not in n] + ["sub/a", "sub/b/c"]
    files = {name: data(100 + i * 40_000, i) for i, name in enumerate(names)}
    with kit.folder() as root:
        for name, content in files.items():
            path = root / "tree" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        wanted = {f"tree/{name}": content for name, content in files.items()}
        with peer.check("a folder up"):
            peer.job("copy", root / "tree", url(), "--recursive", "--from-to=LocalBlob", done=len(files))
            same(sorted(container.list_blob_names()), sorted(wanted), "names")
            for name, content in wanted.items():
                same(container.download_blob(name).readall(), content, ascii(name))
        with peer.check("list"):
            lines = [line for line in peer.run("list", url(), "--location=Blob", "--machine-readable") if line.get("MessageType") == "ListObject"]
            found = {}
            for line in lines:
                entry = json.loads(line["MessageContent"])
                found[entry["Path"]] = int(entry["ContentLength"])
            same(found, {name: len(content) for name, content in wanted.items()}, "names and sizes")
        with peer.check("a folder down"):
            peer.job("copy", url("/tree"), root / "back", "--recursive", "--from-to=BlobLocal", done=len(files))
            same(read_tree(root / "back" / "tree" if (root / "back" / "tree").exists() else root / "back"), files, "tree")
        with peer.check("sync up sends what changed and deletes what is gone"):
            (root / "tree" / "sub" / "a").write_bytes(b"changed")
            (root / "tree" / "sub" / "b" / "c").unlink()
            os.utime(root / "tree" / "sub" / "a", (LATER.timestamp(), LATER.timestamp()))
            peer.run("sync", root / "tree", url("/tree"), "--delete-destination=true", "--from-to=LocalBlob")
            same(container.download_blob("tree/sub/a").readall(), b"changed", "content")
            same("tree/sub/b/c" in list(container.list_blob_names()), False, "what is gone is still there")
        with peer.check("copy within the account"):
            other, other_url = peer.container()
            if peer.kind == "azurite":  # Azurite has no Put Blob From URL
                other.upload_blob("sub/a", b"changed")
            else:
                peer.job("copy", url("/tree/sub/a"), other_url("/sub/a"), "--from-to=BlobBlob", done=1)
            same(other.download_blob("sub/a").readall(), b"changed", "content")
        with peer.check("remove one blob, then a folder"):
            peer.run("remove", url("/tree/.hidden"), "--from-to=BlobTrash")
            same("tree/.hidden" in list(container.list_blob_names()), False, "the one blob is still there")
            peer.run("remove", url("/tree"), "--recursive", "--from-to=BlobTrash")
            same(list(container.list_blob_names()), [], "names")


def rights(peer):
    container, url = peer.container()
    with kit.folder() as root, peer.check("a SAS of another container is refused"):
        (root / "file").write_bytes(b"x")
        other, _ = peer.container()
        forged = url("/file").replace(container.container_name, other.container_name, 1)
        peer.run("copy", root / "file", forged, "--from-to=LocalBlob", expect=1)
        same(list(other.list_blob_names()), [], "names")


def main():
    for kind in kit.stores():
        with kit.store(kind) as store, kit.folder() as place:
            peer = Peer(kind, store, place)
            for part in (sizes, trees, rights):
                part(peer)
    kit.finish()


if __name__ == "__main__":
    main()
