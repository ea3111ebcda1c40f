"""Downloads with obstore, the Rust crate object_store for Python: obstore_get.py CONTAINER-URL-WITH-SAS NAME FOLDER [CERTIFICATE].

NAME is a blob or a folder of blobs, as listing tells; an empty FOLDER drops what comes. Twelve requests at a time.
"""

import asyncio
import os
import sys

import obstore
from obstore_store import AT_A_TIME, BLOCK, container_at

url, name, folder, *certificate = sys.argv[1:]
store = container_at(url, certificate)


async def in_lanes(work):
    """Does all of it, so much at a time."""
    work = iter(work)

    async def lane():
        for one in work:
            await one()

    await asyncio.gather(*(lane() for _ in range(AT_A_TIME)))


async def large(blob):
    """One blob in ranges, each written at its place."""
    file = os.open(f"{folder}/{blob['path']}", os.O_WRONLY | os.O_CREAT) if folder else None

    def piece(start):
        async def fetch():
            end = min(start + BLOCK, blob["size"])
            content = await obstore.get_range_async(store, blob["path"], start=start, end=end)
            if file is not None:
                await asyncio.to_thread(os.pwrite, file, content, start)

        return fetch

    await in_lanes(piece(start) for start in range(0, blob["size"], BLOCK))


def small(blob):
    """One blob in one request."""

    async def fetch():
        content = await (await obstore.get_async(store, blob["path"])).bytes_async()
        if folder:
            path = f"{folder}/{blob['path']}"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(content)

    return fetch


async def main():
    """Whatever it is."""
    blobs = (blob for page in obstore.list(store, prefix=name, chunk_size=1000) for blob in page)
    first = next(blobs, None)
    if first is None:
        # A prefix is made of whole names: a blob has no blobs beneath.
        await large(await obstore.head_async(store, name))
        return
    await in_lanes([small(first), *(small(blob) for blob in blobs)])


asyncio.run(main())
