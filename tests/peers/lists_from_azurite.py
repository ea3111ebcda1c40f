"""What we see of Azurite, beside what the official Python SDK sees of it: names, sizes, snapshots, folders, filters, bytes.

The filters are worked out again here, from Python's own means.
"""

import fnmatch
import json
import re
import subprocess

import kit
from kit import check, data, same

from azure.storage.blob import BlobPrefix, BlobServiceClient

# The newest service version that this Azurite takes.
VERSION = "2025-11-05"

TREE = ["a.txt", "build/x.o", "build/deep/y.txt", "buildings.txt", "src/a.rs", "src/sub/b.rs", "a//b", "/lead", "dir/"]


class Box:
    """A container with blobs in it: each as long as its name."""

    def __init__(self, store, name, blobs):
        client = BlobServiceClient.from_connection_string(store.connection_string, api_version=VERSION)
        self.sdk = client.create_container(name)
        self.url = f"{store.url}/{name}"
        for blob in blobs:
            self.sdk.upload_blob(blob, data(len(blob)))

    def ours(self, command, *flags, path=""):
        """The lines of one of our commands, as JSON."""
        ran = kit.blobjet(command, self.url + path, "--output-type", "json", *flags, **kit.key_environment()).ok()
        return [json.loads(line) for line in ran.out.splitlines()]

    def names(self, *flags, path=""):
        """What we list."""
        return [line["name"] for line in self.ours("list", *flags, path=path) if line["type"] in ("blob", "folder")]


def names(store):
    blobs = sorted(set(kit.ODD_NAMES) | set(TREE))
    box = Box(store, "names", blobs)
    theirs = {blob.name: blob.size for blob in box.sdk.list_blobs()}
    with check("azurite: list has the names and sizes that the SDK lists"):
        same(sorted(box.names()), sorted(theirs), "names")
        same({line["name"]: line["bytes"] for line in box.ours("list") if line["type"] == "blob"}, theirs, "sizes")
    with check("azurite: list --depth 1 has the folders that the SDK walks"):
        walked = [item.name for item in box.sdk.walk_blobs(delimiter="/")]
        same(sorted(box.names("--depth", "1")), sorted(walked), "names")
        assert any(isinstance(item, BlobPrefix) for item in box.sdk.walk_blobs(delimiter="/")), "there are folders"
    with check("azurite: du adds up what the SDK lists"):
        total = box.ours("du", "--depth", "0")[-1]
        same((total["count"], total["bytes"]), (len(theirs), sum(theirs.values())), "count and bytes")
        build = [line for line in box.ours("du") if line["type"] == "usage" and line["name"] == "build/"]
        same(build[0]["bytes"], sum(size for name, size in theirs.items() if name.startswith("build/")), "bytes of build/")


def filters(store):
    box = Box(store, "filters", TREE)

    def under(name, folder):
        return name == folder or name.startswith(folder + "/")

    for flags, takes in [
        (["--include-pattern", "*.txt;b*"], lambda n: any(fnmatch.fnmatchcase(n.split("/")[-1], p) for p in ("*.txt", "b*"))),
        (["--exclude-path", "build;src/sub"], lambda n: not under(n, "build") and not under(n, "src/sub")),
        (["--include-path", "build", "--exclude-pattern", "*.o"], lambda n: under(n, "build") and not n.endswith(".o")),
        (["--include-regex", "^b.*t$"], lambda n: re.search("^b.*t$", n)),
        (["--min-size", "9", "--max-size", "12"], lambda n: 9 <= len(n) <= 12),
        (["--include-before", "2020-01-01"], lambda n: False),
        (["--glob", "src/**/*.rs"], lambda n: n.startswith("src/") and n.endswith(".rs")),
    ]:
        with check(f"azurite: list {' '.join(flags)}"):
            same(sorted(box.names(*flags)), sorted(filter(takes, TREE)), "names")
    with check("azurite: list of a pattern"):
        same(box.names(path="/*/*.rs"), ["src/a.rs"], "names")


def snapshots(store):
    box = Box(store, "snapshots", ["a", "b"])
    box.sdk.get_blob_client("a").create_snapshot()
    with check("azurite: list --include snapshots, metadata"):
        box.sdk.get_blob_client("b").set_blob_metadata({"made_by": "them"})
        theirs = sorted((blob.name, blob.snapshot or "") for blob in box.sdk.list_blobs(include=["snapshots"]))
        lines = [line for line in box.ours("list", "--include", "snapshots;metadata") if line["type"] == "blob"]
        same(sorted((line["name"], line.get("snapshot", "")) for line in lines), theirs, "names and snapshots")
        same([line["metadata"] for line in lines if line["name"] == "b"], [{"made_by": "them"}], "metadata")


def contents(store):
    large = data(9 << 20)
    box = Box(store, "contents", ["d/same", "d/other", "d/theirs"])
    box.sdk.upload_blob("large", large)
    url, env = box.url, kit.key_environment()

    def cat(*arguments):
        """What `cat` writes, byte for byte."""
        with kit.folder() as place, open(place / "out", "w+b") as out:
            command = [kit.BLOBJET, "cat", *arguments]
            environment = kit.clean_environment(BLOBJET_STATE=str(place / "state"), **env)
            subprocess.run(command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, env=environment, timeout=120, check=True)
            out.seek(0)
            return out.read()

    theirs = box.sdk.get_blob_client("large")
    for flags, start, count in [
        ([], 0, len(large)),
        (["--head", "100"], 0, 100),
        (["--tail", "100"], len(large) - 100, 100),
        (["--offset", "5000000", "--count", "3000000"], 5_000_000, 3_000_000),
    ]:
        with check(f"azurite: cat {' '.join(flags)}".rstrip()):
            got = cat(f"{url}/large", *flags)
            same(got, theirs.download_blob(offset=start, length=count).readall(), "what the SDK reads")
            same(got, large[start : start + count], "what was written")
    with check("azurite: cat of several blobs"):
        same(cat(f"{url}/d/same", f"{url}/d/theirs"), data(6) + data(8), "one after the other")

    with kit.folder() as place:
        for name, content in [("same", data(6)), ("other", data(7, seed=1)), ("ours", b"ours")]:
            (place / name).write_bytes(content)
        for flags, wanted in [
            ([], ["+ ours", "- theirs"]),
            (["--all"], ["+ ours", "- theirs", "= other", "= same"]),
            # The MD5 that the SDK stored with the blob.
            (["--by", "hash", "--all"], ["* other", "+ ours", "- theirs", "= same"]),
        ]:
            with check(f"azurite: check {' '.join(flags)}".rstrip()):
                ran = kit.blobjet("check", place, f"{url}/d", *flags, **env)
                lines = sorted(line for line in ran.out.splitlines() if line[:2] in ("= ", "+ ", "- ", "* ", "! "))
                same((ran.code, lines), (1, wanted), "code and lines")


def main():
    with kit.azurite() as store:
        for part in (names, filters, snapshots, contents):
            part(store)
    kit.finish()


if __name__ == "__main__":
    main()
