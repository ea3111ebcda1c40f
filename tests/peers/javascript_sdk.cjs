// The official JavaScript SDK at work against the store named in AZURE_STORAGE_CONNECTION_STRING; started by javascript_sdk.py.
//
// Prints `ok NAME` or `FAIL NAME: why` for every check, like its Python sisters.
"use strict";

const assert = require("node:assert/strict");
const crypto = require("node:crypto");
const { buffer } = require("node:stream/consumers");
const { Readable } = require("node:stream");
const {
  AccountSASPermissions,
  AccountSASResourceTypes,
  AccountSASServices,
  BlobClient,
  BlobSASPermissions,
  BlobServiceClient,
  BlockBlobClient,
  ContainerClient,
  ContainerSASPermissions,
  generateAccountSASQueryParameters,
  generateBlobSASQueryParameters,
  StorageSharedKeyCredential,
} = require("@azure/storage-blob");

const kind = process.env.PEER_STORE;
const oddNames = JSON.parse(process.env.PEER_NAMES);
const options = { retryOptions: { maxTries: 1 } };
const client = BlobServiceClient.fromConnectionString(process.env.AZURE_STORAGE_CONNECTION_STRING, options);
const key = client.credential;
const hour = 3600 * 1000;
const later = new Date(Date.now() + hour);
const block = 256 * 1024;

let failed = 0;
let containers = 0;

async function check(name, body) {
  const full = `javascript sdk, ${kind}: ${name}`;
  try {
    await body();
    console.log(`ok ${full}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${full}: ${String(error.stack ?? error).replace(/\s+/g, " ").slice(0, 600)}`);
  }
}

// Fails unless the promise is refused with this status and, if given, this code.
async function refused(promise, status, code) {
  let error;
  try {
    await promise;
  } catch (caught) {
    error = caught;
  }
  assert.ok(error, "went through");
  assert.equal(error.statusCode, status, String(error));
  if (code) assert.equal(error.code ?? error.details?.errorCode, code);
}

async function collect(iterator, pick) {
  const found = [];
  for await (const entry of iterator) found.push(pick(entry));
  return found;
}

async function container() {
  containers += 1;
  const made = client.getContainerClient(`box${containers}`);
  await made.create();
  return made;
}

async function download(blob, ...range) {
  return buffer((await blob.download(...range)).readableStreamBody);
}

async function transfers() {
  const box = await container();
  for (const size of [0, 1, block, block + 1, 4 * block + 17]) {
    await check(`upload and download ${size} bytes`, async () => {
      const content = crypto.randomBytes(size);
      const blob = box.getBlockBlobClient(`size-${size}`);
      await blob.uploadData(content, { blockSize: block, maxSingleShotSize: block, concurrency: 4 });
      assert.ok((await download(blob)).equals(content), "content differs");
      if (size) {
        const whole = await blob.downloadToBuffer(0, undefined, { blockSize: 100_000, concurrency: 4 });
        assert.ok(whole.equals(content), "content read in ranges differs");
      }
      const lists = await blob.getBlockList("all");
      assert.equal((lists.committedBlocks ?? []).length, size <= block ? 0 : Math.ceil(size / block), "blocks");
    });
  }
  await check("upload a stream", async () => {
    const content = crypto.randomBytes(3 * block + 5);
    const blob = box.getBlockBlobClient("streamed");
    await blob.uploadStream(Readable.from([content.subarray(0, 1000), content.subarray(1000)]), block, 3);
    assert.ok((await download(blob)).equals(content), "content differs");
  });
  await check("ranges", async () => {
    const content = crypto.randomBytes(1000);
    const blob = box.getBlockBlobClient("ranged");
    await blob.uploadData(content);
    assert.ok((await download(blob, 10, 5)).equals(content.subarray(10, 15)));
    assert.ok((await download(blob, 990)).equals(content.subarray(990)));
    await refused(blob.download(2000, 1), 416, "InvalidRange");
  });
  await check("one byte wrong under an MD5 is refused", async () => {
    const blob = box.getBlockBlobClient("wrong");
    const md5 = crypto.createHash("md5").update("right").digest();
    const code = kind === "azurite" ? undefined : "Md5Mismatch";
    await refused(blob.stageBlock("YQ==", "wrong", 5, { transactionalContentMD5: md5 }), 400, code);
    await blob.stageBlock("YQ==", "right", 5, { transactionalContentMD5: md5 });
    await blob.commitBlockList(["YQ=="]);
    assert.equal((await download(blob)).toString(), "right");
  });
  if (kind !== "azurite") {
    await check("one byte wrong under a CRC64 is refused", async () => {
      // CRC-64/NVME of "123456789", as in the catalogue of CRC algorithms, low byte first.
      const crc = Buffer.from("ae8b14860a799888", "hex").reverse();
      const blob = box.getBlockBlobClient("crc");
      await refused(blob.stageBlock("YQ==", "123456780", 9, { transactionalContentCrc64: crc }), 400, "Crc64Mismatch");
      await blob.stageBlock("YQ==", "123456789", 9, { transactionalContentCrc64: crc });
      await blob.commitBlockList(["YQ=="]);
      assert.equal((await download(blob)).toString(), "123456789");
    });
    await check("Put Block From URL and Put Blob From URL", async () => {
      const source = box.getBlockBlobClient("source");
      await source.uploadData(Buffer.from("0123456789"));
      const url = await source.generateSasUrl({ permissions: BlobSASPermissions.parse("r"), expiresOn: later });
      const joined = box.getBlockBlobClient("joined");
      await joined.stageBlockFromURL("YQ==", url, 5, 5);
      await joined.stageBlockFromURL("Yg==", url, 0, 5);
      await joined.commitBlockList(["YQ==", "Yg=="]);
      assert.equal((await download(joined)).toString(), "5678901234");
      const whole = box.getBlockBlobClient("whole");
      await whole.syncUploadFromURL(url);
      assert.equal((await download(whole)).toString(), "0123456789");
    });
  }
}

async function names() {
  await check("odd names", async () => {
    const box = await container();
    for (const name of oddNames) await box.getBlockBlobClient(name).uploadData(Buffer.from(name));
    const listed = await collect(box.listBlobsFlat(), (blob) => blob.name);
    assert.deepEqual(listed.toSorted(), oddNames.toSorted());
    for (const name of oddNames) {
      const blob = box.getBlockBlobClient(name);
      assert.equal((await download(blob)).toString(), name);
      await blob.delete();
    }
    assert.deepEqual(await collect(box.listBlobsFlat(), (blob) => blob.name), []);
  });
  await check("listing: pages, prefix, delimiter, metadata, tags", async () => {
    const box = await container();
    const made = ["a", "dir/1", "dir/2", "dir/sub/3", "z"];
    for (const name of made) await box.getBlockBlobClient(name).uploadData(Buffer.from("x"), { metadata: { n: name.length.toString() }, tags: { t: "1" } });
    const pages = await collect(box.listBlobsFlat().byPage({ maxPageSize: 2 }), (page) => page.segment.blobItems.map((b) => b.name));
    assert.deepEqual(pages, [made.slice(0, 2), made.slice(2, 4), made.slice(4)]);
    assert.deepEqual(await collect(box.listBlobsFlat({ prefix: "dir/" }), (b) => b.name), made.slice(1, 4));
    const top = await collect(box.listBlobsByHierarchy("/"), (b) => `${b.kind} ${b.name}`);
    assert.deepEqual(top.toSorted(), ["blob a", "blob z", "prefix dir/"]);
    const rich = await collect(box.listBlobsFlat({ includeMetadata: true, includeTags: true }), (b) => [b.metadata, b.tags, b.properties.contentLength]);
    assert.deepEqual(rich[1], [{ n: "5" }, { t: "1" }, 1]);
  });
}

async function properties() {
  const box = await container();
  const headers = {
    blobContentType: "text/x-mine",
    blobContentEncoding: "x-mine",
    blobContentLanguage: "en",
    blobContentDisposition: "inline",
    blobCacheControl: "no-store",
  };
  for (const [how, size] of [["one request", 10], ["blocks", 2 * block]]) {
    await check(`headers, metadata, tags and tier of a blob sent in ${how}`, async () => {
      const blob = box.getBlockBlobClient(how);
      const more = { blobHTTPHeaders: headers, metadata: { a: "1" }, tags: { t: "v" }, tier: "Cool" };
      await blob.uploadData(crypto.randomBytes(size), { ...more, blockSize: block, maxSingleShotSize: block });
      const found = await blob.getProperties();
      for (const [name, value] of Object.entries(headers)) {
        const short = name.replace("blob", "");
        assert.equal(found[short[0].toLowerCase() + short.slice(1)], value);
      }
      assert.deepEqual([found.metadata, found.accessTier, found.contentLength], [{ a: "1" }, "Cool", size]);
      assert.deepEqual((await blob.getTags()).tags, { t: "v" });
    });
  }
  await check("snapshot, lease, delete with snapshots", async () => {
    const blob = box.getBlockBlobClient("snapped");
    await blob.uploadData(Buffer.from("first"));
    const { snapshot } = await blob.createSnapshot();
    await blob.uploadData(Buffer.from("second"));
    assert.equal((await download(blob.withSnapshot(snapshot))).toString(), "first");
    const lease = blob.getBlobLeaseClient();
    await lease.acquireLease(15);
    await refused(blob.delete({ deleteSnapshots: "include" }), 412, "LeaseIdMissing");
    await lease.renewLease();
    await lease.releaseLease();
    await refused(blob.delete(), 409, "SnapshotsPresent");
    await blob.delete({ deleteSnapshots: "include" });
    assert.equal(await blob.exists(), false);
    await refused(blob.download(), 404, "BlobNotFound");
  });
  await check("copy within the account", async () => {
    const source = box.getBlockBlobClient("one request");
    const target = box.getBlockBlobClient("copied");
    const poller = await target.beginCopyFromURL(source.url, { intervalInMs: 10 });
    assert.equal((await poller.pollUntilDone()).copyStatus, "success");
    assert.ok((await download(target)).equals(await download(source)));
  });
  await check("conditions", async () => {
    const blob = box.getBlockBlobClient("conditional");
    const { etag } = await blob.upload("first", 5, { conditions: { ifNoneMatch: "*" } });
    await refused(blob.upload("second", 6, { conditions: { ifNoneMatch: "*" } }), 409, "BlobAlreadyExists");
    await blob.upload("second", 6, { conditions: { ifMatch: etag } });
    await refused(blob.upload("third", 5, { conditions: { ifMatch: etag } }), 412, "ConditionNotMet");
    const now = (await blob.getProperties()).etag;
    await refused(blob.download(0, undefined, { conditions: { ifNoneMatch: now } }), 304);
    assert.equal((await download(blob)).toString(), "second");
  });
}

async function signatures() {
  const box = await container();
  await box.getBlockBlobClient("seen").uploadData(Buffer.from("content"));
  const service = (more) => `${generateBlobSASQueryParameters({ containerName: box.containerName, expiresOn: later, ...more }, key)}`;
  await check("a container SAS made by the SDK", async () => {
    const sas = service({ permissions: ContainerSASPermissions.parse("rwl") });
    const by = new ContainerClient(`${box.url}?${sas}`, undefined, options);
    await by.getBlockBlobClient("by-sas").uploadData(crypto.randomBytes(2 * block), { blockSize: block, maxSingleShotSize: block });
    assert.deepEqual(await collect(by.listBlobsFlat(), (b) => b.name), ["by-sas", "seen"]);
    await refused(by.getBlobClient("seen").delete(), 403, "AuthorizationPermissionMismatch");
  });
  await check("a blob SAS made by the SDK, with a header it asks for", async () => {
    const sas = service({ blobName: "seen", permissions: BlobSASPermissions.parse("r"), contentType: "text/x-asked" });
    const answer = await new BlobClient(`${box.url}/seen?${sas}`, undefined, options).download();
    assert.equal(answer.contentType, "text/x-asked");
    assert.equal((await buffer(answer.readableStreamBody)).toString(), "content");
  });
  await check("an account SAS made by the SDK", async () => {
    const sas = generateAccountSASQueryParameters(
      {
        expiresOn: later,
        permissions: AccountSASPermissions.parse("rl"),
        services: AccountSASServices.parse("b").toString(),
        resourceTypes: AccountSASResourceTypes.parse("sco").toString(),
      },
      key,
    );
    const by = new BlobServiceClient(`${client.url}?${sas}`, undefined, options);
    assert.ok((await collect(by.listContainers(), (c) => c.name)).includes(box.containerName));
    await refused(by.getContainerClient("another").create(), 403);
  });
  await check("an expired SAS and a wrong key are refused", async () => {
    const code = kind === "azurite" ? "AuthorizationFailure" : "AuthenticationFailed";
    const sas = service({ permissions: ContainerSASPermissions.parse("r"), expiresOn: new Date(Date.now() - hour) });
    await refused(new BlockBlobClient(`${box.url}/seen?${sas}`, undefined, options).download(), 403, code);
    const wrong = new StorageSharedKeyCredential(key.accountName, Buffer.from("wrong").toString("base64"));
    await refused(new BlobClient(`${box.url}/seen`, wrong, options).download(), 403, code);
  });
  if (process.env.PEER_SAS_URL) {
    await check("a SAS made by `blobjet sas`", async () => {
      const by = new ContainerClient(process.env.PEER_SAS_URL, undefined, options);
      await by.getBlockBlobClient("ours").uploadData(Buffer.from("x"));
      assert.deepEqual(await collect(by.listBlobsFlat(), (b) => b.name), ["ours"]);
      await refused(by.getBlobClient("ours").delete(), 403, "AuthorizationPermissionMismatch");
    });
  }
}

async function main() {
  for (const part of [transfers, names, properties, signatures]) await part();
  process.exitCode = failed ? 1 : 0;
}

main();
