"""The official JavaScript SDK at work against our emulator: starts the store, and javascript_sdk.cjs does the rest."""

import json
import subprocess
import sys
from pathlib import Path

import kit

from azure.storage.blob import BlobServiceClient

SCRIPT = Path(__file__).with_suffix(".cjs")
SECONDS = 180


def main():
    worst = 0
    for kind in kit.stores():
        with kit.store(kind) as store:
            environment = {
                "AZURE_STORAGE_CONNECTION_STRING": store.connection_string,
                "NODE_PATH": str(kit.PEERS / "node" / "node_modules"),
                "PEER_STORE": kind,
                "PEER_NAMES": json.dumps(kit.ODD_NAMES + kit.names_at_the_limit()),
            }
            if kind != "azurite":
                BlobServiceClient.from_connection_string(store.connection_string).create_container("sas-box")
                with kit.check(f"javascript sdk, {kind}: blobjet sas"):
                    made = kit.blobjet(
                        "sas", f"{store.url}/sas-box", "--permissions", "rwl", "--expiry", "1h", **kit.key_environment()
                    ).ok()
                    environment["PEER_SAS_URL"] = made.out.strip()
            command = ["node", str(SCRIPT)]
            ran = subprocess.run(
                command, env=kit.clean_environment(**environment), stdin=subprocess.DEVNULL, timeout=SECONDS, check=False
            )
            worst = max(worst, abs(ran.returncode))
    sys.exit(1 if worst or kit.failures() else 0)


if __name__ == "__main__":
    main()
