import { createHash, randomUUID } from "node:crypto";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Writable } from "node:stream";
import { type Logger, pino } from "pino";
import { afterEach, expect, test } from "vitest";
import { sealedMark, type WantedImage } from "../../adapters/images/image-mark.ts";
import { PostgresSharedKeyStore } from "../../adapters/postgres/api/postgres-shared-key-store.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { uploadedName } from "../../runtime/find-image-file.ts";
import { makeOwnedDir } from "../../runtime/owned-dir.ts";
import { readSettings } from "../../runtime/settings.ts";
import { markName } from "../../runtime/wanted-image.ts";
import { IMAGE_MARKS_KEY } from "../../services/api/image/open-glance.ts";
import { openApi } from "../../services/api/open-api.ts";
import { apiDeclaration } from "../../services/api/settings.ts";
import { freshDatabase } from "../rigs/databases.ts";
import { eventually } from "../rigs/eventually.ts";
import { type FakeGlance, startFakeGlance } from "../rigs/fake-glance.ts";
import { startFakeKeystone } from "../rigs/fake-keystone.ts";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Stores a private image of a tenant's in Glance. */
async function upload(glance: FakeGlance, bits: string): Promise<WantedImage> {
  const id = randomUUID();
  const image = { id, name: "base", disk_format: "raw", container_format: "bare", visibility: "private" };
  const headers = { "x-auth-token": "ann", "content-type": "application/octet-stream" };
  await fetch(`${glance.url}/v2/images`, { method: "POST", headers, body: JSON.stringify(image) });
  await fetch(`${glance.url}/v2/images/${id}/file`, { method: "PUT", headers, body: bits });
  return {
    id,
    sha512: createHash("sha512").update(bits).digest("hex"),
    ...{ diskFormat: "raw", bytes: bits.length },
  };
}

/** Settings of an api with Glance. NATS is not needed for images. */
function settingsOf(databaseUrl: string, dir: string, keystone: { readonly url: string; readonly password: string }) {
  const argv = ["--listen", "127.0.0.1:0", "--database-url", databaseUrl];
  argv.push("--nats-url", "nats://127.0.0.1:1", "--auth", "keystone", "--images", "glance", "--images-path", dir);
  const env = { BERTH_KEYSTONE_URL: keystone.url, BERTH_KEYSTONE_PASSWORD: keystone.password };
  const read = readSettings(apiDeclaration, { argv, env });
  if (read.kind !== "settings") throw new Error("there are no settings");
  return read.settings;
}

test("apis fetch what one of them has marked, with a key that they share, and never what a host has marked; the key is in no log", async () => {
  const [database, keystone, glance] = await Promise.all([
    freshDatabase("api"),
    startFakeKeystone(),
    startFakeGlance(),
  ]);
  closers.push(() => Promise.all([database.drop(), keystone.close(), glance.close()]));
  keystone.catalog = [{ type: "image", endpoints: [{ interface: "internal", region_id: "one", url: glance.url }] }];
  const dir = join(makeOwnedDir("sealed-marks"), randomUUID());
  mkdirSync(dir);
  closers.push(async () => rmSync(dir, { recursive: true }));
  const [stolen, wanted] = [await upload(glance, "a secret of Ann's"), await upload(glance, "disk")];
  let log = "";
  const logger: Logger = pino(
    { level: "trace" },
    new Writable({
      write(chunk, _encoding, done) {
        log += chunk;
        done();
      },
    }),
  );
  const fail = (error: unknown) => {
    throw error;
  };
  // A host has written it before the apis start.
  writeFileSync(join(dir, markName(stolen, "wanted")), JSON.stringify(stolen));
  const settings = settingsOf(database.url, dir, keystone);
  const apis = await Promise.all([1, 2].map(() => openApi({ settings, logger, fail }, null)));
  for (const api of apis) closers.push(() => api.close());
  for (const api of apis) await api.start();
  const pool = createPool({ url: database.url, applicationName: "sealed marks" });
  closers.push(() => pool.end());
  const { rows } = await pool.query<{ name: string }>("select name from shared_keys");
  expect(rows).toEqual([{ name: IMAGE_MARKS_KEY }]);
  const key = await new PostgresSharedKeyStore(pool).key(IMAGE_MARKS_KEY);
  await eventually(
    "both to refuse it",
    () => log.split(`the mark ${markName(stolen, "wanted")} in the directory of images is skipped`).length > 2,
  );
  writeFileSync(join(dir, markName(wanted, "wanted")), sealedMark(wanted, key));
  await eventually("the other to be fetched", () =>
    existsSync(join(dir, uploadedName(wanted.id, wanted.sha512 ?? ""))),
  );
  expect(glance.asked.filter((one) => one.startsWith("GET") && one.includes(stolen.id))).toEqual([]);
  expect(existsSync(join(dir, uploadedName(stolen.id, stolen.sha512 ?? "")))).toBe(false);
  for (const encoding of ["hex", "base64", "base64url"] as const)
    expect(log).not.toContain(Buffer.from(key).toString(encoding));
});
