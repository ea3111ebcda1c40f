"""`blobjet access` on Azurite, with SAS that the official Python SDK has made: what it tells, and that nothing changes.

What is asked of writing must not write on a server that passes over conditions, either; this one is another's.
"""

import datetime
import json

import kit
from kit import check, same

from azure.storage.blob import (
    BlobSasPermissions,
    BlobServiceClient,
    ContainerSasPermissions,
    generate_blob_sas,
    generate_container_sas,
)

# The newest service version that this Azurite takes.
VERSION = "2025-11-05"
LATER = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
SAS = {"account_key": kit.KEY, "expiry": LATER, "version": VERSION}

# The letters of a SAS, and those that are to be told. Who may write may create.
RIGHTS = {"r": "r", "c": "c", "w": "cw", "d": "d", "t": "t", "rwdt": "rcwdt"}


def everything(container):
    """All that is there, as far as it can be listed, and the bytes."""
    kinds = ["metadata", "tags", "snapshots", "uncommittedblobs", "deleted", "copy"]
    listed = []
    for blob in container.list_blobs(include=kinds):
        facts = (blob.name, blob.size, blob.etag, blob.last_modified, blob.snapshot, blob.metadata, blob.tags, blob.lease.state)
        listed.append(tuple(str(fact) for fact in facts))
    blob = container.get_blob_client("a.txt")
    committed, uncommitted = container.get_blob_client("begun").get_block_list("all")
    return sorted(listed), blob.download_blob().readall(), len(committed), [block.id for block in uncommitted]


def told(url):
    """The letters that are said to be there, and the exit code."""
    ran = kit.blobjet("access", url, "--output-type", "json")
    rights = json.loads(ran.out)["rights"]
    unclear = [right for right in rights if right["allowed"] is None]
    if unclear:
        raise AssertionError(f"unclear: {unclear}")
    return "".join(right["letter"] for right in rights if right["allowed"]), ran.code


def main():
    with kit.azurite() as store:
        client = BlobServiceClient.from_connection_string(store.connection_string, api_version=VERSION)
        container = client.create_container("box")
        blob = container.upload_blob("a.txt", b"hello", metadata={"k": "v"}, tags={"t": "1"})
        blob.create_snapshot()
        container.get_blob_client("begun").stage_block("AAAA", b"never committed")
        before = everything(container)
        for letters, wanted in {"l": "l", **RIGHTS}.items():
            with check(f"azurite: access tells sp={letters} of a container's SAS"):
                permission = ContainerSasPermissions.from_string(letters)
                sas = generate_container_sas(kit.ACCOUNT, "box", permission=permission, **SAS)
                same(told(f"{store.url}/box?{sas}"), (wanted, 0))
        for name in ["a.txt", "begun", "absent"]:
            for letters, wanted in RIGHTS.items():
                with check(f"azurite: access tells sp={letters} of a SAS for {name}"):
                    permission = BlobSasPermissions.from_string(letters)
                    sas = generate_blob_sas(kit.ACCOUNT, "box", name, permission=permission, **SAS)
                    same(told(f"{store.url}/box/{name}?{sas}"), (wanted, 0))
        with check("azurite: access changes nothing, of what is committed and of what is not"):
            same(everything(container), before, "what is there")
    kit.finish()


if __name__ == "__main__":
    main()
