"""Uploads with obstore, the Rust crate object_store for Python: obstore_put.py SOURCE CONTAINER-URL-WITH-SAS [CERTIFICATE].

Twelve requests at a time. It has no way to be told of a certificate, so that with one it checks none.
"""

import asyncio
import os
import sys
from pathlib import Path
from urllib.parse import urlsplit

import obstore
from obstore.store import AzureStore

AT_A_TIME = 12
BLOCK = 8 * 1024 * 1024

source, url, *certificate = sys.argv[1:]
source = Path(source)
parts = urlsplit(url)
account, container = parts.path.strip("/").split("/")
store = AzureStore(
    container,
    account_name=account,
    endpoint=f"{parts.scheme}://{parts.netloc}/{account}",
    sas_key=parts.query,
    client_options={"allow_http": True, **({"allow_invalid_certificates": True} if certificate else {})},
)


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
