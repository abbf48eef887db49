import { expect, test } from "vitest";
import type { ImageQuery, ImageRecord } from "../../../core/stores/api/image-store.ts";
import type { KnownCall } from "../http/call.ts";
import { listImages } from "./list-images.ts";

const COUNT = 12_000;
const images = Array.from({ length: COUNT }, (_, index) => ({
  ...{
    id: String(index),
    owner: "p",
    visibility: "shared",
    createdAtMs: COUNT - index,
    updatedAtMs: 0,
    properties: {},
  },
  ...(index % 300 === 0 && { data: "awaited" }),
})) as unknown as readonly ImageRecord[];
const call = { identity: { isAdmin: false, projectId: "p" }, minor: 1 } as unknown as KnownCall;

async function list(query: Record<string, string>, more = 0) {
  let reads = 0;
  const store = {
    image: async (id: string) => images[Number(id)] ?? null,
    images: async ({ marker, limit }: ImageQuery) => {
      reads += 1;
      const from = marker === null ? 0 : Number(marker) + 1;
      const found = images.slice(from, from + limit);
      return found.length < limit && reads < more ? images.slice(0, limit) : found;
    },
  };
  const { images: page, next } = await listImages(store, call, query, { pageMax: 1_000 });
  return { ids: (page as readonly { readonly id: string }[]).map(({ id }) => id), next, reads };
}

test("a list by status reads no more images than it needs for the page, however many there are", async () => {
  const first = await list({ status: "queued", limit: "4" });
  expect(first).toMatchObject({ ids: ["0", "300", "600", "900"], reads: 1 });
  expect(first.next).toContain("marker=900");
  const second = await list({ status: "queued", limit: "4", marker: "900" });
  expect(second).toMatchObject({ ids: ["1200", "1500", "1800", "2100"], reads: 2 });
  expect((await list({ status: "queued" })).ids).toHaveLength(40);
  expect(await list({ status: "saving" })).toMatchObject({ ids: [], next: undefined });
  await expect(list({ status: "queued", sort: "name:asc" })).rejects.toThrow(/would have to be sorted/);
});

test("a list is sorted by no more keys than there are, since each repetition takes time", async () => {
  await expect(list({ name: "x", sort: Array.from({ length: 9 }, () => "name").join() })).rejects.toThrow(
    "Images are sorted by at most 8 keys.",
  );
});

test("community images of other projects are listed only if they are asked for", async () => {
  const asked: ImageQuery[] = [];
  const store = {
    image: async () => null,
    images: async (query: ImageQuery) => {
      asked.push(query);
      return [];
    },
  };
  for (const query of [{}, { sort: "name" }, { visibility: "all" }, { visibility: "community" }])
    await listImages(store, call, query, { pageMax: 1_000 });
  expect(asked.map(({ communityOf, visibility }) => [communityOf, visibility])).toEqual([
    ["p", undefined],
    ["p", undefined],
    [undefined, undefined],
    [undefined, "community"],
  ]);
});

test("a list with filters that too few images pass is refused after 50,000 images", async () => {
  await expect(list({ os_version: "none", limit: "1" }, 1_000)).rejects.toThrow(
    "of the first 50000 images pass the filters",
  );
});
