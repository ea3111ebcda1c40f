"""The container that the scripts with obstore work with."""

from urllib.parse import urlsplit

from obstore.store import AzureStore

AT_A_TIME = 12
BLOCK = 8 * 1024 * 1024


def container_at(url, certificate):
    """The one of a URL with a SAS. It has no way to be told of a certificate, so that with one it checks none."""
    parts = urlsplit(url)
    account, container = parts.path.strip("/").split("/")
    return AzureStore(
        container,
        account_name=account,
        endpoint=f"{parts.scheme}://{parts.netloc}/{account}",
        sas_key=parts.query,
        client_options={"allow_http": True, **({"allow_invalid_certificates": True} if certificate else {})},
    )
