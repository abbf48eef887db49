import { expect, test } from "vitest";
import { EndedImages } from "./ended-images.ts";

test("images that cannot be removed keep no others, and are tried again", async () => {
  const left = new Set(Array.from({ length: 130 }, (_, index) => String(index).padStart(3, "0")));
  const ended = new EndedImages({
    endedShelved: async (after, limit) => [...left].filter((id) => after === null || id > after).slice(0, limit),
  });
  let tried: string[] = [];
  const isStuck = (id: string) => id < "007";
  let stuck: (id: string) => boolean = isStuck;
  const remove = async (id: string) => {
    tried.push(id);
    if (stuck(id)) throw new Error(`no ${id}`);
    left.delete(id);
  };
  await expect(ended.removeEach(remove)).rejects.toThrow("5 images of shelved servers could not be removed");
  expect(tried).toEqual(["000", "001", "002", "003", "004"]);
  await expect(ended.removeEach(remove)).rejects.toThrow(/^2 images/);
  await ended.removeEach(remove);
  expect([...left]).toEqual(["000", "001", "002", "003", "004", "005", "006"]);
  [tried, stuck] = [[], () => false];
  await ended.removeEach(remove);
  expect([tried.length, left.size]).toEqual([7, 0]);
});
