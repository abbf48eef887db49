import { createHash, randomBytes, randomUUID } from "node:crypto";
import {
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { PassThrough, Readable } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ImageDirectory } from "../../../adapters/images/image-directory.ts";
import { sealedMark, type WantedImage } from "../../../adapters/images/image-mark.ts";
import { WantedImages } from "../../../adapters/images/wanted-images.ts";
import { uploadedName } from "../../../runtime/find-image-file.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { makeOwnedDir } from "../../../runtime/owned-dir.ts";
import { awaitImageFile } from "../../../runtime/wanted-image.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { ImageFetcher } from "./image-fetcher.ts";

const BITS = Buffer.alloc(3_000, "disk");
/** The key of the apis' seals. */
const KEY = randomBytes(32);
const sha512 = createHash("sha512").update(BITS).digest("hex");

let dir: string;
let clock: ManualClock;
let told: string[];
let wanted: WantedImages;
let image: WantedImage;
let download: (id: string) => Promise<Readable | null>;

beforeEach(() => {
  dir = join(makeOwnedDir("image-fetcher"), randomUUID());
  mkdirSync(dir);
  clock = new ManualClock(0);
  told = [];
  wanted = new WantedImages(dir, clock, KEY);
  image = { id: randomUUID(), sha512, diskFormat: "raw", bytes: BITS.length };
  download = async () => Readable.from([BITS]);
});
afterEach(() => rmSync(dir, { recursive: true }));

const fetcherOf = (marks = wanted, bytesMax = 10_000): ImageFetcher =>
  new ImageFetcher(
    {
      ...{ wanted: marks, files: new ImageDirectory(dir), clock, download: (id) => download(id) },
      events: {
        imageFetched: () => told.push("fetched"),
        imageNotFetched: (_id, error) => told.push(`not fetched: ${(error as Error).message}`),
        imageRefused: (_id, reason) => told.push(`refused: ${reason}`),
      },
    },
    { pollMs: 1_000, fetchesMax: 2, bytesMax, retryMs: 10_000 },
  );
const look = async (fetcher: ImageFetcher) => {
  await fetcher.look();
  await fetcher.idle();
};
/** Waits for the file as a host does. The clock is advanced past its pauses. */
async function onHost(asked: WantedImage): Promise<string> {
  let outcome: string | null = null;
  awaitImageFile(dir, asked, [".raw"], { clock }).then(
    (found) => {
      outcome = found === null ? "none" : found.path;
    },
    (error: Error) => {
      outcome = error.message;
    },
  );
  return eventually("the host", () => {
    clock.advance(500);
    return outcome;
  });
}

describe("an image that hosts lack", () => {
  test("is awaited by hosts while it is fetched, and the mark goes when the file is there", async () => {
    await wanted.want(image);
    const host = onHost(image);
    await look(fetcherOf());
    expect(await host).toBe(join(dir, uploadedName(image.id, sha512)));
    expect([readdirSync(dir), told]).toEqual([[uploadedName(image.id, sha512)], ["fetched"]]);
    await wanted.want(image);
    expect(await wanted.wanted()).toEqual([]);
  });

  test("is not awaited when nobody has asked for it, and found when the image service knows no hash", async () => {
    expect(await onHost(image)).toBe("none");
    const unknown = { ...image, sha512: null };
    await wanted.want(unknown);
    await look(fetcherOf());
    expect(await onHost(unknown)).toBe(join(dir, uploadedName(image.id, sha512)));
  });

  test("is fetched by one of two apis, and by the other one when the first is dead", async () => {
    await wanted.want(image);
    const { promise, resolve } = Promise.withResolvers<Readable>();
    download = () => promise;
    const [first, second] = [fetcherOf(), fetcherOf(new WantedImages(dir, clock, KEY))];
    await first.look();
    download = async () => Readable.from([BITS]);
    await look(second);
    clock.advance(20_000);
    // It is alive.
    await first.look();
    await look(second);
    clock.advance(20_000);
    await look(second);
    expect(told).toEqual([]);
    // It is not seen again.
    clock.advance(20_000);
    for (const _ of [1, 2]) await look(second);
    expect(told).toEqual(["fetched"]);
    resolve(Readable.from([BITS]));
    await first.idle();
    expect(readdirSync(dir)).toEqual([uploadedName(image.id, sha512)]);
  });

  test.each([
    [
      "other bits",
      async () => Readable.from([Buffer.alloc(3_000, "evil")]),
      /another one than the image service states/,
    ],
    [
      "bits of another format",
      async () => Readable.from([Buffer.concat([Buffer.from("514649fb", "hex"), BITS]).subarray(0, 3_000)]),
      /content is qcow2/,
    ],
    ["too many bits", async () => Readable.from([Buffer.alloc(10_001)]), /more than 10000 bytes/],
    ["no bits", async () => null, /has no such image/],
  ])(
    "fails its servers at once when the image service has %s, until it is asked for again",
    async (_what, bits, why) => {
      await wanted.want(image);
      download = bits;
      await look(fetcherOf());
      expect(told).toEqual([expect.stringMatching(why)]);
      expect(await onHost(image)).toMatch(why);
      download = async () => Readable.from([BITS]);
      await wanted.want(image);
      await look(fetcherOf());
      expect(readdirSync(dir)).toEqual([uploadedName(image.id, sha512)]);
    },
  );

  test("is asked for again after a pause when its data break off or the image service is silent", async () => {
    await wanted.want(image);
    const fetcher = fetcherOf();
    for (const [bits, advanceMs] of [
      [() => Promise.reject(new Error("silent")), 10_000],
      [async () => Readable.from([BITS.subarray(0, 100)]), 9_999],
      [async () => Readable.from([BITS]), 1],
    ] as const) {
      download = bits;
      await look(fetcher);
      clock.advance(advanceMs);
    }
    expect(told).toEqual(["not fetched: silent", "not fetched: the data ended after 100 of 3000 bytes"]);
    await look(fetcher);
    expect(told[2]).toBe("fetched");
  });

  test("is fetched although other marks are damaged or lie about their image, of which each is told once", async () => {
    const [id, other] = [randomUUID(), randomUUID()];
    const mark = (name: string, document: unknown) =>
      writeFileSync(join(dir, `.${name}.wanted`), typeof document === "string" ? document : JSON.stringify(document));
    const good = { id, sha512: null, diskFormat: "raw", bytes: null };
    const unsized = { ...good, bytes: -1 };
    for (const document of ["{}", "null", "no JSON", " ".repeat(5_000)]) mark(randomUUID(), document);
    mark(other, { ...good, id: "../../etc" });
    mark(randomUUID(), good);
    mark(`${id}-${"0".repeat(32)}`, { ...good, sha512: `${"0".repeat(32)}/../../../x` });
    mark(id, JSON.parse(sealedMark(unsized, KEY)));
    mkdirSync(join(dir, `.${randomUUID()}.wanted`));
    await wanted.want(image);
    const fetcher = fetcherOf();
    await look(fetcher);
    await look(fetcher);
    expect(told.filter((one) => one === "fetched")).toHaveLength(1);
    expect(told.filter((one) => one.startsWith("not fetched: the mark"))).toHaveLength(9);
    // A bad mark is replaced when its image is asked for.
    await wanted.want({ id, sha512: null, diskFormat: "raw", bytes: null });
    await look(fetcher);
    expect(told.filter((one) => one === "fetched")).toHaveLength(2);
  });

  test("is not fetched for a mark that a host has written, whatever it has seen of others, and such a mark is told once and not touched", async () => {
    await wanted.want(image);
    const seen = JSON.parse(readFileSync(join(dir, `.${uploadedName(image.id, sha512)}.wanted`), "utf8"));
    const plain = (): WantedImage => ({ id: randomUUID(), sha512: null, diskFormat: "raw", bytes: null });
    const [unsealed, copied, other, widened, emptied] = [plain(), plain(), plain(), plain(), plain()];
    const widenedSeal = JSON.parse(sealedMark({ ...widened, bytes: 1 }, KEY)).seal;
    const forged = new Map<WantedImage, unknown>([
      [unsealed, unsealed],
      [copied, { ...copied, seal: seen.seal }],
      [other, JSON.parse(sealedMark(other, randomBytes(32)))],
      [widened, { ...widened, seal: widenedSeal }],
      [emptied, { ...emptied, seal: "" }],
    ]);
    for (const [{ id }, document] of forged) {
      writeFileSync(join(dir, `.${id}.wanted`), JSON.stringify(document));
      utimesSync(join(dir, `.${id}.wanted`), 1, 1);
    }
    const asked: string[] = [];
    download = async (id) => {
      asked.push(id);
      return Readable.from([BITS]);
    };
    const fetcher = fetcherOf();
    for (const _ of [1, 2, 3]) await look(fetcher);
    expect(asked).toEqual([image.id]);
    const refused = told.filter((one) => one.startsWith("not fetched: the mark"));
    for (const { id } of forged.keys()) {
      expect(refused.filter((one) => one.includes(id))).toHaveLength(1);
      expect(statSync(join(dir, `.${id}.wanted`)).mtimeMs).toBe(1_000);
    }
    expect([refused.length, told.length]).toEqual([5, 6]);
    // A user of an api wants the image, such as during an upgrade from apis that did not seal.
    await wanted.want(unsealed);
    await look(fetcher);
    expect(asked).toEqual([image.id, unsealed.id]);
  });

  test("is claimed without a change of another file to which a host has made a link in the claim's place", async () => {
    const victim = join(dir, "victim");
    writeFileSync(victim, "");
    utimesSync(victim, 1, 1);
    expect(await wanted.claim(image)).toBe(true);
    const claim = join(dir, `.${uploadedName(image.id, sha512)}.fetching`);
    rmSync(claim);
    symlinkSync(victim, claim);
    expect(await wanted.claim(image)).toBe(true);
    expect(statSync(victim).mtimeMs).toBe(1_000);
  });

  test("is fetched by each api that has the key, and its mark is understood by an api that knows no seals", async () => {
    await wanted.want(image);
    const mark = JSON.parse(readFileSync(join(dir, `.${uploadedName(image.id, sha512)}.wanted`), "utf8"));
    expect(mark).toMatchObject(image);
    expect(JSON.stringify(mark)).not.toContain(KEY.toString("hex"));
    await look(fetcherOf(new WantedImages(dir, clock, Uint8Array.from(KEY))));
    expect(told).toEqual(["fetched"]);
  });

  test("is not taken with fewer or more bytes than the image service states, although it knows no hash", async () => {
    const unknown = { ...image, sha512: null };
    await wanted.want(unknown);
    download = async () => Readable.from([BITS.subarray(0, 100)]);
    const fetcher = fetcherOf();
    await look(fetcher);
    expect(readdirSync(dir)).toEqual([`.${image.id}.wanted`]);
    download = async () => Readable.from([Buffer.alloc(3_001)]);
    clock.advance(10_000);
    await look(fetcher);
    expect(await onHost(unknown)).toMatch(/3001 bytes instead of 3000/);
    expect(told).toEqual([expect.stringMatching(/ended after 100 of 3000/), expect.stringMatching(/^refused: /)]);
  });

  test("is fetched although the data of others drip, which begin again after it", async () => {
    const dripping = [randomUUID(), randomUUID(), randomUUID()];
    const streams: PassThrough[] = [];
    download = async (id) => {
      if (id === image.id) return Readable.from([BITS]);
      streams.push(new PassThrough());
      return streams.at(-1) ?? null;
    };
    const wantedOf = (id: string) => ({ ...image, id, sha512: null, bytes: null });
    for (const id of dripping.slice(1)) await wanted.want(wantedOf(id));
    const fetcher = fetcherOf();
    await fetcher.look();
    await eventually("both to be asked for", () => streams.length === 2);
    for (const id of dripping.slice(0, 1)) await wanted.want(wantedOf(id));
    await wanted.want(image);
    for (const stream of streams) stream.write("a");
    await eventually("the drops to come", () => streams.every((stream) => stream.readableLength === 0));
    clock.advance(29_999);
    await fetcher.look();
    expect(told).toEqual([]);
    clock.advance(1);
    await eventually("the image to be fetched", async () => {
      await fetcher.look();
      clock.advance(10_000);
      return told.includes("fetched");
    });
    expect(told[0]).toMatch(/fewer than 2000000 bytes came within 30 s, and other images wait/);
    // The one that began first is never broken off.
    expect(streams.slice(0, 2).map((stream) => stream.destroyed)).toEqual([false, true]);
    for (const stream of streams) stream.destroy();
    await fetcher.idle();
  });

  test.each([
    ["is broken off for its pace while another image waits, also beside a quick fetch that began earlier", true],
    ["is not broken off for its pace while no other image waits, or while all fetches after it are quick", false],
  ])("%s", async (_title, isFirstQuick) => {
    const ids = [randomUUID(), randomUUID()];
    const streams = new Map<string, PassThrough>();
    download = async (id) => {
      streams.set(id, new PassThrough());
      return streams.get(id) ?? null;
    };
    const fetcher = fetcherOf(wanted, 100_000_000);
    const wantedOf = (id: string) => ({ ...image, id, sha512: null, bytes: null });
    for (const id of ids) await wanted.want(wantedOf(id));
    await fetcher.look();
    await eventually("both to be asked for", () => streams.size === 2);
    const pass = async () => {
      for (let second = 0; second < 100; second += 1) {
        clock.advance(1_000);
        await fetcher.look();
      }
    };
    await pass();
    expect(told).toEqual([]);
    const [first, second] = [...streams.values()];
    const [quick, slow] = isFirstQuick ? [first, second] : [second, first];
    await wanted.want(image);
    for (let round = 0; round < 5; round += 1) {
      quick?.write(Buffer.alloc(2_000_000));
      await eventually("the bytes to come", () => quick?.readableLength === 0);
      clock.advance(30_000);
      await fetcher.look();
    }
    expect([quick?.destroyed, slow?.destroyed]).toEqual([false, isFirstQuick]);
    expect(told.slice(0, 1)).toEqual(isFirstQuick ? [expect.stringMatching(/other images wait/)] : []);
    for (const stream of streams.values()) stream.destroy();
    await fetcher.idle();
  });

  test("is not awaited for ever when no api runs", async () => {
    await wanted.want(image);
    expect(await onHost(image)).toMatch(/no api fetches the data .* at present/);
  });
});
