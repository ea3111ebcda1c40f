// Uploads with @azure/storage-blob: javascript_sdk.cjs SOURCE CONTAINER-URL-WITH-SAS. Twelve requests at a time; a certificate
// comes in NODE_EXTRA_CA_CERTS.
const fs = require("fs");
const path = require("path");
const { ContainerClient } = require("@azure/storage-blob");

const AT_A_TIME = 12;
const BLOCK = 8 * 1024 * 1024;
const [source, url] = process.argv.slice(2);
const container = new ContainerClient(url);

function* files(folder) {
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const inner = path.join(folder, entry.name);
    if (entry.isDirectory()) yield* files(inner);
    else yield inner;
  }
}

async function put(file) {
  const blob = container.getBlockBlobClient(path.relative(path.dirname(source), file));
  await blob.uploadFile(file, { blockSize: BLOCK, maxSingleShotSize: BLOCK, concurrency: AT_A_TIME });
}

async function main() {
  if (!fs.statSync(source).isDirectory()) return put(source);
  const left = files(source);
  const lane = async () => {
    for (const file of left) await put(file);
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, lane));
}

main().catch((error) => {
  console.error(error.message);
  process.exit(1);
});
