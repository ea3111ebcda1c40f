"""Uploads with obstore, the Rust crate object_store for Python: obstore_put.py SOURCE CONTAINER-URL-WITH-SAS [CERTIFICATE].

Twelve requests at a time.
"""

import asyncio
import os
import sys
from pathlib import Path

import obstore
from obstore_store import AT_A_TIME, BLOCK, container_at

source, url, *certificate = sys.argv[1:]
source = Path(source)
store = container_at(url, certificate)


async def put(path):
    """One file, in blocks where it is larger than one."""
    name = os.path.relpath(path, source.parent)
    await obstore.put_async(store, name, path, use_multipart=path.stat().st_size > BLOCK, chunk_size=BLOCK, max_concurrency=AT_A_TIME)


async def main():
    """All of them."""
    if source.is_file():
        await put(source)
        return
    paths = (path for path in source.rglob("*") if path.is_file())

    async def lane():
        for path in paths:
            await put(path)

    await asyncio.gather(*(lane() for _ in range(AT_A_TIME)))


asyncio.run(main())
