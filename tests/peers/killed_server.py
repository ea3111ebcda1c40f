"""`blobjet serve --dir` killed with SIGKILL while clients write: after a restart everything acknowledged is there, whole.

Two clients write when it dies: the Python SDK, blob after blob (so that we know each acknowledged one), and `blobjet copy`.
"""

import json
import signal
import subprocess
import threading
import time

import kit
from kit import check, data, same

from azure.core.exceptions import AzureError
from azure.storage.blob import BlobBlock, BlobServiceClient

BLOCK = 256 * 1024


def connect(store):
    """The SDK's client: blocks above 64 KiB, no second try."""
    return BlobServiceClient.from_connection_string(
        store.connection_string, max_single_put_size=64 * 1024, max_block_size=64 * 1024, retry_total=0
    )


def content_of(i):
    """Content of the i-th blob: every other one takes three blocks."""
    return data(1000 if i % 2 else 150_000, i)


def write_until_killed(container, start, acknowledged):
    """Uploads one blob after the other and notes each that was acknowledged; ends with the server."""
    for i in range(start, start + 100_000):
        try:
            container.upload_blob(f"sdk-{i:06}", content_of(i), metadata={"i": str(i)})
        except AzureError:
            return
        acknowledged.append(i)


def sdk_round(place, number, acknowledged):
    """One life of the server: what was acknowledged in earlier lives is there, more is written, it is killed."""
    store = kit.start_blobjet_serve("--dir", place)
    try:
        container = connect(store).get_container_client("box")
        if not container.exists():
            container.create_container()
        for i in acknowledged:
            blob = container.get_blob_client(f"sdk-{i:06}")
            same(blob.download_blob().readall(), content_of(i), f"blob {i}")
            same(blob.get_blob_properties().metadata, {"i": str(i)}, f"metadata of blob {i}")
        before = len(acknowledged)
        writer = threading.Thread(target=write_until_killed, args=(container, number * 100_000, acknowledged))
        writer.start()
        try:
            kit.eventually(lambda: len(acknowledged) >= before + 7)
        finally:
            store.stop(signal.SIGKILL)
            writer.join()
    finally:
        store.stop(signal.SIGKILL)


def by_sdk():
    with kit.folder() as place, check("killed server: each of five restarts finds everything the SDK was told is stored"):
        acknowledged = []
        for number in range(5):
            sdk_round(place, number, acknowledged)
        with kit.blobjet_serve("--dir", place) as store:
            container = connect(store).get_container_client("box")
            for blob in container.list_blobs():
                i = int(blob.name.removeprefix("sdk-"))
                same(container.download_blob(blob.name).readall(), content_of(i), f"{blob.name}, acknowledged or not")
            names = set(container.list_blob_names())
            same([i for i in acknowledged if f"sdk-{i:06}" not in names], [], "acknowledged and not listed")


def staged():
    with kit.folder() as place, check("killed server: staged blocks are there afterwards, and the old content until they are committed"):
        store = kit.start_blobjet_serve("--dir", place)
        blob = connect(store).create_container("box").upload_blob("blob", b"old")
        blob.stage_block("a", b"new ")
        blob.stage_block("b", b"content")
        store.stop(signal.SIGKILL)
        with kit.blobjet_serve("--dir", place) as store:
            blob = connect(store).get_blob_client("box", "blob")
            same(blob.download_blob().readall(), b"old", "content before")
            same(sorted(b.id for b in blob.get_block_list("uncommitted")[1]), ["a", "b"], "staged")
            blob.commit_block_list([BlobBlock("a"), BlobBlock("b")])
            same(blob.download_blob().readall(), b"new content", "content after")


def by_our_copy():
    files = {f"{i:03}": data(BLOCK * 3 + i if i % 5 == 0 else 2000 + i, i) for i in range(400)}
    with kit.folder() as place, kit.folder() as root, kit.folder() as state:
        for name, content in files.items():
            (root / name).write_bytes(content)
        with check("killed server: `blobjet copy` ends with an error, and what it counted as done is stored"):
            store = kit.start_blobjet_serve("--dir", place)
            container = connect(store).create_container("box")
            command = [
                kit.BLOBJET, "copy", root, f"{store.url}/box", "--recursive", "--as-subdir=false", "--block-size-mb=0.25",
                "--output-type=json", "--cap-mbps=100",
            ]  # fmt: skip
            process = subprocess.Popen(
                list(map(str, command)),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                env=kit.clean_environment(BLOBJET_STATE=str(state), **kit.key_environment()),
            )  # fmt: skip
            try:
                kit.eventually(lambda: len(list(container.list_blob_names())) >= 40)
                store.stop(signal.SIGKILL)
                started = time.monotonic()
                out, _ = process.communicate(timeout=120)
                took = time.monotonic() - started
            finally:
                process.kill()
                store.stop(signal.SIGKILL)
            summary = json.loads(out.splitlines()[-1])
            same(summary["type"], "summary", "last line")
            assert process.returncode != 0, "exit code 0"
            assert took < 60, f"took {took:.0f} s to notice"
            same(summary["total"], summary["done"] + summary["failed"] + summary["skipped"] + summary["pending"], "counts")
        with kit.blobjet_serve("--dir", place) as store:
            container = connect(store).get_container_client("box")
            with check("killed server: every blob of the copy that is listed is whole"):
                names = list(container.list_blob_names())
                for name in names:
                    same(container.download_blob(name).readall(), files[name], name)
                assert summary["done"] <= len(names) < len(files), f"done {summary['done']}, listed {len(names)} of {len(files)}"
            with check("killed server: the same copy again brings the rest"):
                flags = ["--recursive", "--as-subdir=false", "--block-size-mb=0.25"]
                kit.blobjet("copy", root, f"{store.url}/box", *flags, **kit.key_environment()).ok()
                same(sorted(container.list_blob_names()), sorted(files), "names")
                for name, content in files.items():
                    same(container.download_blob(name).readall(), content, name)


def main():
    by_sdk()
    staged()
    by_our_copy()
    kit.finish()


if __name__ == "__main__":
    main()
