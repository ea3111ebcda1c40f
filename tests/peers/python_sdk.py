"""The official Python SDK at work against our emulator: what it sends is understood, what it reads back is right.

PEER_STORES=azurite runs the same checks against Azurite, which shows whether they ask for the right things.
"""

import datetime

import kit
from kit import data, refused, same

from azure.core import MatchConditions
from azure.core.exceptions import (
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.storage.blob import (
    AccountSasPermissions,
    BlobBlock,
    BlobClient,
    BlobSasPermissions,
    BlobServiceClient,
    ContainerClient,
    ContainerSasPermissions,
    ContentSettings,
    ResourceTypes,
    StandardBlobTier,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)

LATER = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=1)
EARLIER = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(hours=1)


class Peer:
    """One store and the SDK's client to it."""

    def __init__(self, kind, store):
        self.kind, self.url = kind, store.url
        # Blocks of 256 KiB above 256 KiB, so that little data makes many.
        self.client = BlobServiceClient.from_connection_string(
            store.connection_string, max_single_put_size=256 * 1024, max_block_size=256 * 1024, retry_total=0
        )
        self.count = 0
        # Azurite has a word of its own for it.
        self.not_authentic = "AuthorizationFailure" if kind == "azurite" else "AuthenticationFailed"

    def check(self, name):
        """A check named after the store."""
        return kit.check(f"python sdk, {self.kind}: {name}")

    def container(self):
        """A new container."""
        self.count += 1
        return self.client.create_container(f"box{self.count}")


def containers(peer):
    with peer.check("container: create, metadata, list, delete"):
        container = peer.client.create_container("mine", metadata={"a": "b"})
        same(container.get_container_properties().metadata, {"a": "b"}, "metadata")
        with refused(ResourceExistsError, "ContainerAlreadyExists", 409):
            peer.client.create_container("mine")
        container.set_container_metadata({"c": "d"})
        found = list(peer.client.list_containers(name_starts_with="min", include_metadata=True))
        same([(c.name, c.metadata) for c in found], [("mine", {"c": "d"})], "listing")
        container.delete_container()
        with refused(ResourceNotFoundError, "ContainerNotFound", 404):
            container.get_container_properties()
    with peer.check("container names that are no good are refused"):
        with refused(HttpResponseError, "InvalidResourceName", 400):
            peer.client.create_container("No_Good")
    with peer.check("many containers list in pages"):
        made = [f"page-{i:02}" for i in range(5)]
        for name in made:
            peer.client.create_container(name)
        pages = peer.client.list_containers(name_starts_with="page-", results_per_page=2).by_page()
        same([[c.name for c in page] for page in pages], [made[0:2], made[2:4], made[4:]], "pages")


def transfers(peer):
    container = peer.container()
    for size in (0, 1, 256 * 1024, 256 * 1024 + 1, 1024 * 1024 + 17):
        with peer.check(f"upload and download {size} bytes"):
            content = data(size)
            blob = container.get_blob_client(f"size-{size}")
            blob.upload_blob(content, max_concurrency=4)
            same(blob.download_blob(max_concurrency=4).readall(), content, "content")
            same(blob.get_blob_properties().size, size, "size")
            committed, uncommitted = blob.get_block_list("all")
            same((len(committed), len(uncommitted)), (0 if size <= 256 * 1024 else -(-size // (256 * 1024)), 0), "blocks")
    with peer.check("upload with validate_content, download with validate_content"):
        content = data(700_000, 1)
        blob = container.get_blob_client("validated")
        blob.upload_blob(content, validate_content=True)
        same(blob.download_blob(validate_content=True).readall(), content, "content")
    with peer.check("ranges"):
        content = data(1000, 2)
        blob = container.upload_blob("ranged", content)
        same(blob.download_blob(offset=10, length=5).readall(), content[10:15], "bytes 10-14")
        same(blob.download_blob(offset=990).readall(), content[990:], "bytes 990-")
        same(blob.download_blob(offset=990, length=100).readall(), content[990:], "bytes beyond the end")
        with refused(HttpResponseError, "InvalidRange", 416):
            blob.download_blob(offset=2000, length=1).readall()
    with peer.check("blocks staged by hand: lists, order, what is not committed is dropped"):
        blob = container.get_blob_client("by-hand")
        for block, content in (("a", b"AAA"), ("b", b"B"), ("c", b"CC")):
            blob.stage_block(block, content)
        committed, uncommitted = blob.get_block_list("all")
        same((committed, sorted((b.id, b.size) for b in uncommitted)), ([], [("a", 3), ("b", 1), ("c", 2)]), "staged")
        with refused(HttpResponseError, "InvalidBlockList", 400):
            blob.commit_block_list([BlobBlock("a"), BlobBlock("z")])
        blob.commit_block_list([BlobBlock("c"), BlobBlock("a")])
        same(blob.download_blob().readall(), b"CCAAA", "content")
        committed, uncommitted = blob.get_block_list("all")
        same([[(b.id, b.size) for b in part] for part in (committed, uncommitted)], [[("c", 2), ("a", 3)], []], "lists")
        with refused(HttpResponseError, "InvalidBlobOrBlock", 400):
            blob.stage_block("d", b"D")
            blob.stage_block("longer", b"E")
    with peer.check("odd names"):
        container = peer.container()
        wanted = {name: name.encode() for name in kit.ODD_NAMES + kit.names_at_the_limit() + ["a//b", "ends/", "twins", "TWINS"]}
        for name, content in wanted.items():
            container.upload_blob(name, content)
        same(sorted(container.list_blob_names()), sorted(wanted), "names")
        for name, content in wanted.items():
            same(container.download_blob(name).readall(), content, ascii(name))
        for name in wanted:
            container.delete_blob(name)
        same(list(container.list_blob_names()), [], "names after deleting")


def listings(peer):
    container = peer.container()
    made = ["a.txt", "dir/1", "dir/2", "dir/sub/3", "dir2/4", "z"]
    for name in made:
        container.upload_blob(name, b"x", metadata={"n": str(len(name))})
    with peer.check("list flat, in pages, by prefix, from a name on"):
        same([b.name for b in container.list_blobs()], made, "all")
        pages = list(container.list_blobs(results_per_page=4).by_page())
        same([b.name for page in container.list_blobs(results_per_page=4).by_page() for b in page], made, "in pages")
        same(len(pages), 2, "pages")
        same([b.name for b in container.list_blobs(name_starts_with="dir/")], made[1:4], "prefix")
    with peer.check("list by delimiter"):
        # The SDK hands out the prefixes of a page before its blobs.
        same([b.name for b in container.walk_blobs()], ["dir/", "dir2/", "a.txt", "z"], "top")
        same([b.name for b in container.walk_blobs(name_starts_with="dir/")], ["dir/sub/", "dir/1", "dir/2"], "dir/")
        found = [b.name for page in container.walk_blobs(results_per_page=1).by_page() for b in page]
        same(found, ["a.txt", "dir/", "dir2/", "z"], "a page an entry")
    with peer.check("list with metadata, tags and uncommitted blobs"):
        container.get_blob_client("z").set_blob_tags({"k": "v"})
        container.get_blob_client("staged-only").stage_block("a", b"x")
        found = {b.name: b for b in container.list_blobs(include=["metadata", "tags", "uncommittedblobs"])}
        same(found["dir/1"].metadata, {"n": "5"}, "metadata")
        same(found["z"].tags, {"k": "v"}, "tags")
        same("staged-only" in found, True, "the blob that is only staged is listed")
        same("staged-only" in list(container.list_blob_names()), False, "and not without being asked for")


def properties(peer):
    container = peer.container()
    content = data(600_000, 3)
    for name, body in (("one", content[:1000]), ("many", content)):
        with peer.check(f"headers, metadata, tags and tier of a blob sent in {name} request{'' if name == 'one' else 's'}"):
            md5 = bytearray(kit.md5(body))
            settings = ContentSettings("text/x-mine", "x-mine", "en", "inline", "no-store", md5)
            blob = container.upload_blob(
                name, body, content_settings=settings, metadata={"Key": "v=1;2"}, tags={"t 1": "v+1"}, standard_blob_tier=StandardBlobTier.COOL
            )
            found = blob.get_blob_properties()
            same(vars(found.content_settings), vars(settings), "headers")
            same(found.metadata, {"Key": "v=1;2"}, "metadata")
            same(found.tag_count, 1, "tag count")
            same(blob.get_blob_tags(), {"t 1": "v+1"}, "tags")
            same(found.blob_tier, "Cool", "tier")
            same(found.blob_type.value, "BlockBlob", "type")
            same(found.server_encrypted, True, "encrypted")
            same(blob.download_blob().properties.metadata, {"Key": "v=1;2"}, "metadata with the content")
    with peer.check("setting headers, metadata, tags and tier afterwards"):
        blob = container.upload_blob("later", b"x")
        before = blob.get_blob_properties().etag
        blob.set_http_headers(ContentSettings(content_type="text/plain"))
        blob.set_blob_metadata({"m": "1"})
        blob.set_blob_tags({"a": "b"})
        blob.set_standard_blob_tier("Cool")
        found = blob.get_blob_properties()
        same((found.content_settings.content_type, found.metadata, found.blob_tier), ("text/plain", {"m": "1"}, "Cool"))
        same(blob.get_blob_tags(), {"a": "b"}, "tags")
        assert found.etag != before, "the ETag stayed"
    with peer.check("delete; what is not there"):
        blob = container.upload_blob("gone", b"x")
        blob.delete_blob()
        same(blob.exists(), False, "exists")
        with refused(ResourceNotFoundError, "BlobNotFound", 404):
            blob.download_blob()
        with refused(ResourceNotFoundError, "ContainerNotFound", 404):
            peer.client.get_blob_client("nowhere", "x").upload_blob(b"x")


def snapshots_leases_copies(peer):
    container = peer.container()
    with peer.check("snapshots: read, list, promote, delete"):
        blob = container.upload_blob("snapped", b"first", metadata={"v": "1"})
        taken = blob.create_snapshot()["snapshot"]
        blob.upload_blob(b"second", overwrite=True)
        snapshot = container.get_blob_client("snapped", snapshot=taken)
        same(snapshot.download_blob().readall(), b"first", "snapshot")
        same(snapshot.get_blob_properties().metadata, {"v": "1"}, "its metadata")
        same(blob.download_blob().readall(), b"second", "blob")
        found = [(b.name, b.snapshot) for b in container.list_blobs(include=["snapshots"])]
        same(found, [("snapped", taken), ("snapped", None)], "listing")
        with refused(ResourceExistsError, "SnapshotsPresent", 409):
            blob.delete_blob()
        blob.start_copy_from_url(snapshot.url)
        same(blob.download_blob().readall(), b"first", "promoted")
        blob.delete_blob(delete_snapshots="include")
        same(list(container.list_blobs(include=["snapshots"])), [], "listing afterwards")
    with peer.check("blob lease: acquire, write with and without, renew, change, break, release"):
        blob = container.upload_blob("leased", b"first")
        lease = blob.acquire_lease(15)
        with refused(HttpResponseError, "LeaseIdMissing", 412):
            blob.upload_blob(b"second", overwrite=True)
        blob.upload_blob(b"second", overwrite=True, lease=lease)
        with refused(HttpResponseError, "LeaseAlreadyPresent", 409):
            blob.acquire_lease(15)
        lease.renew()
        lease.change("11111111-1111-1111-1111-111111111111")
        same(blob.get_blob_properties().lease.state, "leased", "state")
        lease.break_lease(0)
        same(blob.get_blob_properties().lease.state, "broken", "state")
        blob.upload_blob(b"third", overwrite=True)
        lease = blob.acquire_lease(-1)
        lease.release()
        same(blob.get_blob_properties().lease.state, "available", "state")
    with peer.check("container lease bars its deletion"):
        held = peer.container()
        lease = held.acquire_lease(15)
        with refused(HttpResponseError, "LeaseIdMissing", 412):
            held.delete_container()
        held.delete_container(lease=lease)
    with peer.check("copy within the account, with new metadata and tier"):
        source = container.upload_blob("source", data(300_000, 4), metadata={"from": "source"})
        target = container.get_blob_client("dir/copied")
        same(target.start_copy_from_url(source.url)["copy_status"], "success", "status")
        same(target.download_blob().readall(), data(300_000, 4), "content")
        same(target.get_blob_properties().metadata, {"from": "source"}, "metadata")
        same(target.get_blob_properties().copy.status, "success", "status in the properties")


def conditions(peer):
    container = peer.container()
    with peer.check("upload without overwrite onto what exists is ResourceExists"):
        blob = container.upload_blob("here", b"first")
        with refused(ResourceExistsError, "BlobAlreadyExists", 409):
            blob.upload_blob(b"second")
        with refused(ResourceExistsError, "BlobAlreadyExists", 409):
            blob.upload_blob(data(600_000))
        same(blob.download_blob().readall(), b"first", "content")
    with peer.check("a changed blob is ResourceModified"):
        blob = container.get_blob_client("here")
        old = blob.get_blob_properties().etag
        blob.upload_blob(b"second", overwrite=True)
        unchanged = {"etag": old, "match_condition": MatchConditions.IfNotModified}
        with refused(ResourceModifiedError, "ConditionNotMet", 412):
            blob.upload_blob(b"third", overwrite=True, **unchanged)
        with refused(ResourceModifiedError, "ConditionNotMet", 412):
            blob.download_blob(**unchanged)
        with refused(ResourceModifiedError, "ConditionNotMet", 412):
            blob.delete_blob(**unchanged)
        same(blob.download_blob().readall(), b"second", "content")
    with peer.check("conditions on times"):
        blob = container.get_blob_client("here")
        with refused(ResourceModifiedError, "ConditionNotMet", 412):
            blob.upload_blob(b"third", overwrite=True, if_unmodified_since=EARLIER)
        blob.upload_blob(b"fourth", overwrite=True, if_modified_since=EARLIER)
        same(blob.download_blob(if_unmodified_since=LATER).readall(), b"fourth", "content")
    if peer.kind != "azurite":  # Azurite does not look at tags here
        with peer.check("conditions on tags"):
            blob = container.upload_blob("tagged", b"first", tags={"state": "done"})
            with refused(ResourceModifiedError, "ConditionNotMet", 412):
                blob.upload_blob(b"second", overwrite=True, if_tags_match_condition="state = 'open'")
            same(blob.download_blob(if_tags_match_condition="state = 'done'").readall(), b"first", "content")


def signatures(peer):
    container = peer.container()
    container.upload_blob("seen", b"content")
    name = container.container_name
    with peer.check("a container SAS made by the SDK: write, list, read, delete"):
        sas = generate_container_sas(
            kit.ACCOUNT, name, account_key=kit.KEY, permission=ContainerSasPermissions.from_string("rwdl"), expiry=LATER
        )
        client = ContainerClient(peer.url, name, credential=sas, max_single_put_size=1000, max_block_size=1000, retry_total=0)
        client.upload_blob("by-sas", data(5000))
        same(client.download_blob("by-sas").readall(), data(5000), "content")
        same(list(client.list_blob_names()), ["by-sas", "seen"], "names")
        client.delete_blob("by-sas")
    with peer.check("a blob SAS made by the SDK opens that blob only, with the headers it asks for"):
        permission = BlobSasPermissions(read=True)
        sas = generate_blob_sas(
            kit.ACCOUNT, name, "seen", account_key=kit.KEY, permission=permission, expiry=LATER, content_type="text/x-asked"
        )
        blob = BlobClient(peer.url, name, "seen", credential=sas, retry_total=0)
        stream = blob.download_blob()
        same((stream.readall(), stream.properties.content_settings.content_type), (b"content", "text/x-asked"))
        with refused(HttpResponseError, "AuthorizationPermissionMismatch", 403):
            blob.upload_blob(b"x", overwrite=True)
        with refused(HttpResponseError, peer.not_authentic, 403):
            BlobClient(peer.url, name, "another", credential=sas, retry_total=0).download_blob()
    with peer.check("an account SAS made by the SDK"):
        sas = generate_account_sas(
            kit.ACCOUNT, kit.KEY, ResourceTypes(service=True, container=True, object=True),
            AccountSasPermissions(read=True, write=True, list=True, create=True), LATER,
        )  # fmt: skip
        client = BlobServiceClient(peer.url, credential=sas, retry_total=0)
        same(name in [c.name for c in client.list_containers()], True, "the container is listed")
        client.create_container("by-account-sas").upload_blob("x", b"x")
        with refused(HttpResponseError, "AuthorizationPermissionMismatch", 403):
            client.get_blob_client("by-account-sas", "x").delete_blob()
    with peer.check("an expired SAS, a wrong signature and a wrong key are refused"):
        permission = BlobSasPermissions(read=True)
        old = generate_blob_sas(kit.ACCOUNT, name, "seen", account_key=kit.KEY, permission=permission, expiry=EARLIER)
        with refused(HttpResponseError, peer.not_authentic, 403):
            BlobClient(peer.url, name, "seen", credential=old, retry_total=0).download_blob()
        wrong = kit.KEY.replace("Eby8", "Xby8")
        forged = generate_blob_sas(kit.ACCOUNT, name, "seen", account_key=wrong, permission=permission, expiry=LATER)
        for credential in (forged, {"account_name": kit.ACCOUNT, "account_key": wrong}):
            with refused(HttpResponseError, peer.not_authentic, 403):
                BlobClient(peer.url, name, "seen", credential=credential, retry_total=0).download_blob()
    with peer.check("a SAS made by `blobjet sas` is good for the SDK: container, blob, account"):
        made = kit.blobjet(
            "sas", f"{peer.url}/{name}", "--permissions", "rwl", "--expiry", "1h", **kit.key_environment()
        ).ok().out.strip()
        client = ContainerClient.from_container_url(made, retry_total=0)
        client.upload_blob("ours", b"x", overwrite=True)
        same("ours" in list(client.list_blob_names()), True, "the blob is listed")
        with refused(HttpResponseError, "AuthorizationPermissionMismatch", 403):
            client.delete_blob("ours")
        made = kit.blobjet(
            "sas", f"{peer.url}/{name}/seen", "--permissions", "r", "--expiry", "1h", **kit.key_environment()
        ).ok().out.strip()
        same(BlobClient.from_blob_url(made, retry_total=0).download_blob().readall(), b"content", "content")
        made = kit.blobjet("sas", peer.url, "--permissions", "rl", "--expiry", "1h", **kit.key_environment()).ok().out.strip()
        same(name in [c.name for c in BlobServiceClient(made, retry_total=0).list_containers()], True, "listed")


def ours_and_theirs(peer):
    with peer.check("what `blobjet copy` put there, the SDK reads; what the SDK put there, `blobjet list` shows"):
        container = peer.container()
        with kit.folder() as root:
            files = {f"file-{n}": data(n) for n in (0, 1, 262_144, 262_145, 1_000_000)}
            for name, content in files.items():
                (root / name).write_bytes(content)
            kit.blobjet(
                "copy", root, f"{peer.url}/{container.container_name}", "--recursive", "--as-subdir=false", "--block-size-mb=0.25",
                **kit.key_environment(),
            ).ok()  # fmt: skip
        for name, content in files.items():
            same(container.download_blob(name).readall(), content, name)
        container.upload_blob("theirs", b"x")
        listed = kit.blobjet("list", f"{peer.url}/{container.container_name}", **kit.key_environment()).ok().out
        for name in [*files, "theirs"]:
            assert name in listed, f"{name} is not in {listed!r}"


def counting():
    with kit.check("python sdk: the server says at its end how many requests it had"):
        store = kit.start_blobjet_serve("--memory")
        try:
            container = BlobServiceClient.from_connection_string(store.connection_string).create_container("box")
            container.upload_blob("blob", b"x")
            same(container.download_blob("blob").readall(), b"x", "content")
        finally:
            store.stop()
        kit.eventually(lambda: "Requests served: 3" in store.lines)


def main():
    for kind in kit.stores():
        with kit.store(kind) as store:
            peer = Peer(kind, store)
            for part in (
                containers, transfers, listings, properties, snapshots_leases_copies, conditions, signatures, ours_and_theirs,
            ):  # fmt: skip
                part(peer)
    if "azurite" not in kit.stores():
        counting()
    kit.finish()


if __name__ == "__main__":
    main()
