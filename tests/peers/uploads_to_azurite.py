"""Our uploads, taken by Azurite (strict, as it comes) and read back by the official Python SDK, byte for byte.

Azurite and the SDK were written by others: what they agree on with us is not our own mistake made twice.
"""

import datetime
import os
import time

import kit
from kit import check, data, same

from azure.storage.blob import (
    AccountSasPermissions,
    BlobSasPermissions,
    BlobServiceClient,
    ContainerSasPermissions,
    ResourceTypes,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)

BLOCK = 256 * 1024
BLOCK_FLAGS = ["--block-size-mb", "0.25"]
TREE_FLAGS = ["--recursive", "--as-subdir=false"]
# The newest service version that this Azurite takes.
VERSION = "2025-11-05"
LATER = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
SAS = {"account_key": kit.KEY, "expiry": LATER, "version": VERSION}


def write_tree(root, files):
    """Writes files given as name -> bytes."""
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def container_sas(container, rights):
    """A service SAS for a container."""
    permission = ContainerSasPermissions.from_string(rights)
    return generate_container_sas(kit.ACCOUNT, container.container_name, permission=permission, **SAS)


def account_sas():
    """An account SAS that may write blobs."""
    permission = AccountSasPermissions(write=True, create=True)
    return generate_account_sas(kit.ACCOUNT, resource_types=ResourceTypes(object=True), permission=permission, **SAS)


class Azurite:
    """The store, and the SDK's client to it."""

    def __init__(self, store):
        self.url = store.url
        self.connection_string = store.connection_string
        self.client = BlobServiceClient.from_connection_string(store.connection_string, api_version=VERSION)
        self.count = 0

    def container(self):
        """A new container."""
        self.count += 1
        return self.client.create_container(f"box{self.count}")

    def address(self, container, blob="", sas=""):
        """URL of a container, or of a blob whose name needs no encoding."""
        return f"{self.url}/{container.container_name}" + (f"/{blob}" if blob else "") + (f"?{sas}" if sas else "")

    def ways(self):
        """Each way to sign: what it is called, and from a container the SAS for the URL and the environment."""
        return [
            ("account key", lambda _: ("", kit.key_environment())),
            ("connection string", lambda _: ("", {"AZURE_STORAGE_CONNECTION_STRING": self.connection_string})),
            ("write-only container SAS", lambda c: (container_sas(c, "w"), {})),
            ("account SAS", lambda _: (account_sas(), {})),
            ("SAS in the environment", lambda c: ("", {"AZURE_STORAGE_SAS_TOKEN": container_sas(c, "cw")})),
        ]

    def copy(self, source, container, *flags, blob="", **more):
        """Our copy, with the account key."""
        return kit.blobjet(
            "copy", source, self.address(container, blob), *flags, **{**kit.key_environment(), **more}
        )


def compare(container, files):
    """Fails unless the container holds exactly these names with exactly these bytes."""
    same(sorted(container.list_blob_names()), sorted(files), "names")
    for name, content in files.items():
        same(container.download_blob(name).readall(), content, ascii(name))


def blocks(container, blob):
    """How many blocks a blob was committed from; 0 if it was sent in one request."""
    return len(container.get_blob_client(blob).get_block_list("committed")[0])


def sizes(azurite):
    wanted = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK]
    with kit.folder() as root:
        files = {f"size-{n}": data(n) for n in wanted}
        write_tree(root, files)
        for way, credentials in azurite.ways():
            with check(f"azurite: sizes 0, 1, b-1, b, b+1, 2b with {way}"):
                container = azurite.container()
                sas, environment = credentials(container)
                url = azurite.address(container, sas=sas)
                kit.blobjet("copy", root, url, *TREE_FLAGS, *BLOCK_FLAGS, **environment).ok()
                compare(container, files)
                got = {n: blocks(container, f"size-{n}") for n in wanted}
                same(got, {n: 0 if n <= BLOCK else 2 for n in wanted}, "blocks by size")
    with kit.folder() as root:
        limit = 2 * BLOCK
        files = {f"size-{n}": data(n, 1) for n in (limit - 1, limit, limit + 1)}
        write_tree(root, files)
        with check("azurite: one request up to the size of --put-blob-size-mb, blocks above"):
            container = azurite.container()
            azurite.copy(root, container, *TREE_FLAGS, *BLOCK_FLAGS, "--put-blob-size-mb", "0.5").ok()
            compare(container, files)
            got = [blocks(container, f"size-{n}") for n in (limit - 1, limit, limit + 1)]
            same(got, [0, 0, 3], "blocks")
    with kit.folder() as root:
        content = data(9 * 1024 * 1024 + 1)
        write_tree(root, {"big.bin": content})
        with check("azurite: one file in blocks of the default size, to a name of its own, with a SAS for that blob"):
            container = azurite.container()
            permission = BlobSasPermissions(write=True)
            sas = generate_blob_sas(kit.ACCOUNT, container.container_name, "some/where.bin", permission=permission, **SAS)
            ran = kit.blobjet("copy", root / "big.bin", azurite.address(container, "some/where.bin", sas)).ok()
            # Strict Azurite refuses CRC64.
            same(ran.err.count("does not know CRC64"), 1, "times the change to MD5 is told")
            compare(container, {"some/where.bin": content})
            same(blocks(container, "some/where.bin"), 2, "blocks")


def names(azurite):
    # Every file holds its own name, so that no two can be taken for each other; some are more than one block.
    files = {name: name.encode() * (1 + i % 2 * 200) for i, name in enumerate(kit.ODD_NAMES + kit.names_at_the_limit())}
    flags = [*TREE_FLAGS, "--block-size-mb", str(1024 / 1024 / 1024)]
    with kit.folder() as root:
        write_tree(root, files)
        for way, credentials in azurite.ways()[:4]:
            with check(f"azurite: odd names with {way}"):
                container = azurite.container()
                sas, environment = credentials(container)
                kit.blobjet("copy", root, azurite.address(container, sas=sas), *flags, **environment).ok()
                compare(container, files)
        with check("azurite: a file that exists is not taken for a pattern"):
            container = azurite.container()
            azurite.copy(root / "[test].txt", container).ok()
            compare(container, {"[test].txt": files["[test].txt"]})
        with check("azurite: an odd name given in the URL, encoded"):
            container = azurite.container()
            azurite.copy(root / "%41", container, blob="a%20b%2525%2B%23%3F.txt").ok()
            compare(container, {"a b%25+#?.txt": files["%41"]})
    bad = {
        "not UTF-8": b"not-utf8-\xff.txt",
        "a backslash": b"back\\slash.txt",
        "a control character": b"escape-\x1b[31m.txt",
        "a line break": b"line\nbreak.txt",
        "1,025 characters": b"/".join([b"n" * 204] * 5) + b"/" + b"x",
        "255 segments": b"/".join([b"s"] * 255),
    }
    for what, name in bad.items():
        with check(f"azurite: a name with {what} fails alone and is told"), kit.folder() as root:
            path = os.path.join(os.fsencode(root), name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(b"no good")
            write_tree(root, {"good.txt": b"good"})
            container = azurite.container()
            ran = azurite.copy(root, container, *TREE_FLAGS)
            same(ran.code, 1, "exit code")
            compare(container, {"good.txt": b"good"})
            said = ran.out + ran.err
            same("\x1b" in said, False, "an escape on the screen")
            assert name[:4].decode() in said.replace("\\\\", "\\"), f"not named in {said[-400:]!r}"


def properties(azurite):
    flags = [
        "--metadata=k=v;with=a=b;semi=x\\;y", "--blob-tags=team=blue&two%20words=a%2Bb", "--block-blob-tier=Cool", "--put-md5",
        "--content-encoding=x-mine", "--content-language=en", "--content-disposition=inline", "--cache-control=no-store",
    ]  # fmt: skip
    with kit.folder() as root:
        files = {"small.json": b'{"a": 1}', "large.json": data(BLOCK * 2 + 7)}
        write_tree(root, files)
        container = azurite.container()
        with check("azurite: an upload with all its properties"):
            azurite.copy(root, container, *TREE_FLAGS, *BLOCK_FLAGS, *flags).ok()
            compare(container, files)
        for name, content in files.items():
            how = "one request" if name.startswith("small") else "blocks"
            blob = container.get_blob_client(name)
            with check(f"azurite: headers, metadata, tags, MD5 and tier of a blob sent in {how}"):
                found = blob.get_blob_properties()
                headers = found.content_settings
                same(headers.content_type, "application/json", "content type")
                same(headers.content_encoding, "x-mine", "content encoding")
                same(headers.content_language, "en", "content language")
                same(headers.content_disposition, "inline", "content disposition")
                same(headers.cache_control, "no-store", "cache control")
                same(bytes(headers.content_md5 or b""), kit.md5(content), "MD5")
                same(found.metadata, {"k": "v", "with": "a=b", "semi": "x;y"}, "metadata")
                same(found.blob_tier, "Cool", "tier")
                same(blob.get_blob_tags(), {"team": "blue", "two words": "a+b"}, "tags")
        types = {
            "a.css": "text/css", "a.svg": "image/svg+xml", "a.wasm": "application/wasm", "a.avif": "image/avif", "a.mjs": "text/javascript",
            "a.webmanifest": "application/manifest+json",
            "a.docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
            "a.unknown-ending": "application/octet-stream",
        }  # fmt: skip
        with check("azurite: content types by name"), kit.folder() as typed:
            container = azurite.container()
            write_tree(typed, {name: b"x" for name in types})
            azurite.copy(typed, container, *TREE_FLAGS).ok()
            got = {blob.name: blob.content_settings.content_type for blob in container.list_blobs()}
            same(got, types, "content types")
        with check("azurite: --content-type wins"):
            container = azurite.container()
            azurite.copy(root / "small.json", container, "--content-type", "text/x-mine").ok()
            same(container.get_blob_client("small.json").get_blob_properties().content_settings.content_type, "text/x-mine")


def pipes(azurite):
    for size in (0, 1, BLOCK, 3 * BLOCK + 5):
        content = data(size, 2)
        with check(f"azurite: {size} bytes from a pipe"):
            container = azurite.container()
            azurite.copy("-", container, *BLOCK_FLAGS, blob="piped", stdin=content).ok()
            compare(container, {"piped": content})
    with check("azurite: a regular file on stdin"), kit.folder() as root:
        content = data(2 * BLOCK + 1, 3)
        write_tree(root, {"file": content})
        container = azurite.container()
        with open(root / "file", "rb") as file:
            azurite.copy("-", container, *BLOCK_FLAGS, "--content-type", "text/plain", blob="fed", stdin=file).ok()
        compare(container, {"fed": content})
        same(container.get_blob_client("fed").get_blob_properties().content_settings.content_type, "text/plain")


def overwriting(azurite):
    with kit.folder() as root:
        small, large = data(100, 4), data(2 * BLOCK, 4)
        write_tree(root, {"small": small, "large": large})
        for name in ("small", "large"):
            content = {"small": small, "large": large}[name]
            with check(f"azurite: --overwrite of a {name} blob: false keeps it, true replaces it"):
                container = azurite.container()
                container.upload_blob(name, b"what was there")
                azurite.copy(root / name, container, "--overwrite", "false", *BLOCK_FLAGS).ok()
                compare(container, {name: b"what was there"})
                azurite.copy(root / name, container, *BLOCK_FLAGS).ok()
                compare(container, {name: content})
            with check(f"azurite: --overwrite ifSourceNewer of a {name} blob"):
                container = azurite.container()
                container.upload_blob(name, b"what was there")
                hour = 3600
                os.utime(root / name, (time.time() - hour, time.time() - hour))
                azurite.copy(root / name, container, "--overwrite", "ifSourceNewer", *BLOCK_FLAGS).ok()
                compare(container, {name: b"what was there"})
                os.utime(root / name, (time.time() + hour, time.time() + hour))
                azurite.copy(root / name, container, "--overwrite", "ifSourceNewer", *BLOCK_FLAGS).ok()
                compare(container, {name: content})
        with check("azurite: --create-container makes what is missing, and without it exit code is 1 to 5 and nothing is there"):
            missing = azurite.client.get_container_client("not-there-yet")
            ran = azurite.copy(root / "small", missing)
            assert ran.code in (1, 2, 3, 4, 5), f"exit code {ran.code}"
            same(missing.exists(), False, "container exists")
            azurite.copy(root / "small", missing, "--create-container").ok()
            compare(missing, {"small": small})


def refusals(azurite):
    with kit.folder() as root:
        write_tree(root, {"file": b"content"})
        container = azurite.container()
        wrong_key = kit.KEY.replace("Eby8", "Xby8")
        sas = container_sas(container, "w")
        signature = sas.split("sig=")[1].split("&")[0]
        cases = [
            ("a wrong key", azurite.address(container), {"AZURE_STORAGE_ACCOUNT": kit.ACCOUNT, "AZURE_STORAGE_KEY": wrong_key}, 4),
            ("a malformed key", azurite.address(container), {"AZURE_STORAGE_ACCOUNT": kit.ACCOUNT, "AZURE_STORAGE_KEY": "***"}, 2),
            ("a SAS of another container", azurite.address(azurite.container(), sas=sas), {}, 4),
            ("a read-only SAS", azurite.address(container, sas=container_sas(container, "r")), {}, 4),
        ]
        with check("azurite: the development account on loopback needs no key said"):
            own = azurite.container()
            kit.blobjet("copy", root / "file", azurite.address(own)).ok()
            compare(own, {"file": b"content"})
        for what, url, environment, code in cases:
            with check(f"azurite: {what} is exit code {code}, and no secret is shown"):
                started = time.monotonic()
                ran = kit.blobjet("copy", root / "file", url, **environment)
                took = time.monotonic() - started
                same(ran.code, code, f"exit code, having said {ran.err[-300:]!r}")
                said = ran.out + ran.err
                for secret in (wrong_key, wrong_key[:20], signature):
                    assert secret not in said, "a secret is shown"
                assert took < 5, f"took {took:.1f} s"
                same(list(container.list_blob_names()), [], "blobs")


def tool(azurite):
    with kit.folder() as root:
        files = {name: name.encode() for name in kit.ODD_NAMES}
        write_tree(root, files)
        container = azurite.client.get_container_client("tool")
        url = azurite.address(container)
        with check("azurite: make, copy, list --output-type json, remove"):
            kit.blobjet("make", url, **kit.key_environment()).ok()
            same(container.exists(), True, "container exists")
            azurite.copy(root, container, *TREE_FLAGS).ok()
            listed = kit.blobjet("list", url, "--output-type", "json", **kit.key_environment()).ok().out
            for name in ("a%zz.txt", "emoji \N{ROCKET}.bin", "deep/er/and/deeper/still.txt"):
                assert name in listed or ascii(name)[1:-1] in listed, f"{name} is not listed"
            kit.blobjet("remove", f"{url}/a%25zz.txt", **kit.key_environment()).ok()
            compare(container, {n: c for n, c in files.items() if n != "a%zz.txt"})
            kit.blobjet("remove", f"{url}/deep", "--recursive", **kit.key_environment()).ok()
            compare(container, {n: c for n, c in files.items() if n != "a%zz.txt" and not n.startswith("deep/")})
        with check("azurite: --dry-run sends nothing"):
            container = azurite.container()
            azurite.copy(root, container, *TREE_FLAGS, "--dry-run").ok()
            compare(container, {})


def between(azurite):
    """Azurite knows neither Put Blob From URL nor Put Block From URL."""
    files = {name: name.encode() * (1 + i % 2 * 200) for i, name in enumerate(kit.ODD_NAMES)}
    source, target = azurite.container(), azurite.container()
    for name, content in files.items():
        source.upload_blob(name, content, metadata={"color": "blue"})
    copy = ["copy", azurite.address(source), azurite.address(target), "--recursive"]
    with check("azurite: a copy from blob to blob that the server cannot do ends once, and offers --stream"):
        ran = kit.blobjet(*copy, **kit.key_environment())
        same(ran.code, 1, f"exit code, having said {ran.err[-300:]!r}")
        same(ran.err.count("error:"), 1, "errors told")
        assert "--stream" in ran.err, ran.err
        compare(target, {})
    with check("azurite: --stream copies from blob to blob through this machine, names and metadata kept"):
        kit.blobjet(*copy, "--stream", "--block-size-mb", "0.001", **kit.key_environment()).ok()
        compare(target, files)
        kept = {name: target.get_blob_client(name).get_blob_properties().metadata for name in files}
        same(kept, {name: {"color": "blue"} for name in files}, "metadata")


def main():
    with kit.azurite() as store:
        azurite = Azurite(store)
        for part in (sizes, names, properties, pipes, overwriting, refusals, tool, between):
            part(azurite)
    kit.finish()


if __name__ == "__main__":
    main()
