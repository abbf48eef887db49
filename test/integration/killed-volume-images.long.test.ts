import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { MemoryBlockStorage } from "../../adapters/memory/memory-block-storage.ts";
import { PostgresApiStore } from "../../adapters/postgres/api/postgres-api-store.ts";
import { PostgresImageStore } from "../../adapters/postgres/api/postgres-image-store.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { bareSpec } from "../../core/tasks/server-spec.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { VolumeImageSettler } from "../../services/api/compute/server-actions/volume-image-settler.ts";
import { LATE_SNAPSHOT_MS } from "../../services/api/compute/server-actions/volume-images.ts";
import { ImageCatalog } from "../../services/api/image/image-catalog.ts";
import { OwnImages } from "../../services/api/image/own-images.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { eventually } from "../rigs/eventually.ts";
import { startFakeCinder } from "../rigs/fake-cinder.ts";
import type { FakeNeighbour } from "../rigs/fake-neighbour.ts";

const program = join(import.meta.dirname, "../rigs/make-volume-image.ts");
const cinder = new MemoryBlockStorage({ newId: randomUUID });
let database: TestDatabase;
let requests: PostgresApiStore;
let store: PostgresImageStore;
let fake: FakeNeighbour;
beforeAll(async () => {
  database = await freshDatabase("api");
  const pool = createPool({ url: database.url, applicationName: "killed volume images" });
  requests = new PostgresApiStore(pool);
  store = new PostgresImageStore(pool);
  fake = await startFakeCinder(cinder);
});
afterAll(async () => {
  await fake?.close();
  await requests?.close();
  await database?.drop();
});

const patiently = { everyMs: 20, withinMs: 60_000 };

/** Cinder answers the question of this number never. `made`: it has made the snapshot before that. Returns how often it was asked. */
function holdAt(held: { readonly question: number; readonly made: boolean }): () => number {
  let asked = 0;
  cinder.createSnapshot = async (...args) => {
    asked += 1;
    if (asked === held.question && held.made) await MemoryBlockStorage.prototype.createSnapshot.apply(cinder, args);
    if (asked === held.question) await new Promise(() => {});
    return MemoryBlockStorage.prototype.createSnapshot.apply(cinder, args);
  };
  return () => asked;
}

/** Another api, which looks at the image from time to time for so long that every wait is over. */
async function settleElsewhere(): Promise<void> {
  const clock = new ManualClock(Date.now());
  const images = new OwnImages({ store, catalog: new ImageCatalog({ store, clock }, { cacheMs: 0 }), clock });
  const events = {
    snapshotsNotSettled: (error: unknown) => {
      throw error;
    },
  };
  const settler = new VolumeImageSettler({ images, storage: cinder, store: requests, events, clock });
  for (let round = 0; round < 8; round += 1) {
    for (const { id, status } of cinder.allSnapshots()) if (status === "creating") cinder.finishCreating(id);
    for (const image of await images.unfinished(null, 10))
      if (image.upload.snapshots !== undefined) settler.settle(image, image.upload.snapshots);
    await settler.idle();
    clock.advance(LATE_SNAPSHOT_MS / 2);
  }
}

async function begin() {
  const [server, requestId] = [randomUUID(), `req-${randomUUID()}`];
  await requests.accept([bareSpec(server)]);
  const volumeIds = [1, 2].map(() => cinder.putVolume({ projectId: "p1" }).id);
  const words = [program, database.url, fake.url.replace(/\/v3\/.*$/, ""), server, requestId, ...volumeIds];
  const child = spawn(process.execPath, words, { stdio: ["ignore", "pipe", "inherit"] });
  const ended = once(child, "close");
  const snapshots = () => cinder.allSnapshots().filter(({ volumeId }) => volumeIds.includes(volumeId));
  const action = async () => (await requests.requests([server]))[0]?.changes?.actions?.[0];
  return { child, ended, snapshots, action };
}

test.each([
  ["before Cinder gets the first question", { question: 1, made: false }],
  ["when Cinder has made the first snapshot, and has not answered", { question: 1, made: true }],
  ["between the first snapshot and the second", { question: 2, made: false }],
  ["when Cinder has made both, and nobody has written it down", { question: 2, made: true }],
])("an api that is killed %s leaves neither a snapshot nor an image", async (_title, held) => {
  const asked = holdAt(held);
  const { child, ended, snapshots, action } = await begin();
  const made = held.made ? held.question : held.question - 1;
  const isHeld = () => asked() === held.question && snapshots().length === made;
  await eventually("Cinder to be asked", isHeld, patiently);
  child.kill("SIGKILL");
  await ended;
  expect(await action()).toMatchObject({ action: "createImage", ended: null });
  await settleElsewhere();
  expect([snapshots(), await store.uploads(null, 10)]).toEqual([[], []]);
  expect((await action())?.ended?.error).toMatch(/The api that made the image has ended/);
});

test("an image whose api is gone when Cinder was asked for all snapshots is made active by another", async () => {
  const asked = holdAt({ question: 0, made: false });
  const { child, ended, snapshots, action } = await begin();
  let id = "";
  child.stdout.on("data", (data) => {
    id += data;
  });
  expect((await ended)[0]).toBe(0);
  expect([asked(), snapshots().map(({ status }) => status)]).toEqual([2, ["creating", "creating"]]);
  await settleElsewhere();
  expect(await store.image(id)).toMatchObject({ name: "mine", properties: { bdm_v2: "True" } });
  expect([snapshots().length, await store.uploads(null, 10)]).toEqual([2, []]);
  expect((await action())?.ended?.error).toBeNull();
});
