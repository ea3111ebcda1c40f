"""Uploads with azure-storage-blob: python_sdk.py SOURCE CONTAINER-URL-WITH-SAS [CERTIFICATE]. Twelve requests at a time."""

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from azure.storage.blob import ContainerClient

AT_A_TIME = 12
BLOCK = 8 * 1024 * 1024

source, url, *certificate = sys.argv[1:]
source = Path(source)
trust = {"connection_verify": certificate[0]} if certificate else {}
container = ContainerClient.from_container_url(url, max_block_size=BLOCK, max_single_put_size=BLOCK, **trust)


def put(path):
    """One file, in blocks where it is larger than one."""
    with open(path, "rb") as file:
        container.upload_blob(os.path.relpath(path, source.parent), file, overwrite=True, max_concurrency=AT_A_TIME if source.is_file() else 1)


if source.is_file():
    put(source)
else:
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        list(pool.map(put, (path for path in source.rglob("*") if path.is_file())))
