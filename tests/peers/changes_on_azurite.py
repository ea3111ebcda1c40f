"""Deletes, changes of properties and batches, done to Azurite (strict, as it comes) and seen through the official Python SDK."""

import datetime

import kit
from kit import check, same

from azure.storage.blob import BlobServiceClient, ContainerSasPermissions, ContentSettings, generate_container_sas

# The newest service version that this Azurite takes.
VERSION = "2025-11-05"


def sas(container, rights):
    """A service SAS for a container."""
    later = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
    permission = ContainerSasPermissions.from_string(rights)
    return generate_container_sas(
        kit.ACCOUNT, container.container_name, account_key=kit.KEY, permission=permission, expiry=later, version=VERSION
    )


class Box:
    """A container with blobs, and our program at work on it."""

    count = 0

    def __init__(self, store, client, names):
        Box.count += 1
        self.container = client.create_container(f"changes{Box.count}")
        self.url = f"{store.url}/{self.container.container_name}"
        for name in names:
            settings = ContentSettings(content_type="text/plain", cache_control="no-store")
            self.container.upload_blob(name, b"x", metadata={"k": "v"}, content_settings=settings)

    def run(self, verb, path, *flags, rights=None):
        """Our program, with the account key or with a SAS of these rights."""
        url = f"{self.url}/{path}" if path else self.url
        if rights:
            return kit.blobjet(verb, f"{url}?{sas(self.container, rights)}", *flags)
        return kit.blobjet(verb, url, *flags, **kit.key_environment())

    def names(self):
        return sorted(self.container.list_blob_names())

    def properties(self, name):
        return self.container.get_blob_client(name).get_blob_properties()


def deletes(store, client):
    names = [*kit.ODD_NAMES, "logs/a", "logs/b c", "logs/x//y", "logs-old/a"]
    for rights in (None, "ld"):
        with check(f"azurite: remove in batches, {'with a SAS' if rights else 'with the key'}"):
            box = Box(store, client, names)
            ran = box.run("remove", "logs", "--recursive", rights=rights).ok()
            assert "3 blobs deleted" in ran.out, ran.out
            same(box.names(), sorted([*kit.ODD_NAMES, "logs-old/a"]), "names")
            box.run("remove", "*", "--recursive", rights=rights).ok()
            same(box.names(), [], "names")
    with check("azurite: more than one batch"):
        box = Box(store, client, [f"n/{i:03}" for i in range(600)])
        box.run("remove", "n", "--recursive").ok()
        same(box.names(), [], "names")
    with check("azurite: leases and snapshots stay and are named"):
        box = Box(store, client, ["d/a", "d/leased", "d/shot"])
        lease = box.container.get_blob_client("d/leased").acquire_lease()
        box.container.get_blob_client("d/shot").create_snapshot()
        ran = box.run("remove", "d", "--recursive")
        same(ran.code, 1, "exit code")
        said = ran.out + ran.err
        assert "LeaseIdMissing" in said and "SnapshotsPresent" in said, said
        same(box.names(), ["d/leased", "d/shot"], "names")
        lease.release()
        box.run("remove", "d", "--recursive", "--delete-snapshots=include").ok()
        same(box.names(), [], "names")
    with check("azurite: a container is removed as a whole"):
        box = Box(store, client, ["a"])
        box.run("remove", "", "--recursive", "--yes").ok()
        same(box.container.exists(), False, "container exists")


def properties(store, client):
    with check("azurite: one header changes and the others stay"):
        box = Box(store, client, ["a b"])
        box.run("set-properties", "a%20b", "--content-type=text/html", rights="rw").ok()
        there = box.properties("a b")
        same(there.content_settings.content_type, "text/html", "content type")
        same(there.content_settings.cache_control, "no-store", "cache control")
        assert there.content_settings.content_md5, "the stored MD5 is gone"
        same(there.metadata, {"k": "v"}, "metadata")
    with check("azurite: metadata and tags of many blobs, and none"):
        box = Box(store, client, ["d/a", "d/b"])
        box.run("set-properties", "d", "--recursive", "--metadata=x=1;y=2", "--blob-tags=t=a%20b").ok()
        for name in box.names():
            same(box.properties(name).metadata, {"x": "1", "y": "2"}, "metadata")
            same(box.container.get_blob_client(name).get_blob_tags(), {"t": "a b"}, "tags")
        box.run("set-properties", "d", "--recursive", "--metadata=", "--blob-tags=").ok()
        for name in box.names():
            same(box.properties(name).metadata, {}, "metadata")
            same(box.container.get_blob_client(name).get_blob_tags(), {}, "tags")
    with check("azurite: tiers of many blobs"):
        box = Box(store, client, ["d/a", "d/b", "d/c"])
        box.run("set-properties", "d", "--recursive", "--block-blob-tier=Archive").ok()
        same({box.properties(name).blob_tier for name in box.names()}, {"Archive"}, "tiers")
        ran = box.run("set-properties", "d", "--recursive", "--block-blob-tier=Cool", "--rehydrate-priority=high").ok()
        assert "archive" in ran.err, ran.err


def main():
    with kit.azurite() as store:
        client = BlobServiceClient.from_connection_string(store.connection_string, api_version=VERSION)
        for part in (deletes, properties):
            part(store, client)
    kit.finish()


if __name__ == "__main__":
    main()
