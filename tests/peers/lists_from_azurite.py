"""What we list of Azurite, beside what the official Python SDK lists of it: names, sizes, snapshots, folders, filters.

The filters are worked out again here, from Python's own means.
"""

import fnmatch
import json
import re

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


def main():
    with kit.azurite() as store:
        for part in (names, filters, snapshots):
            part(store)
    kit.finish()


if __name__ == "__main__":
    main()
