import { expect, test } from "vitest";
import { serverSpec } from "../../../../test/contract/cell-fixtures.ts";
import { releaseVolumes } from "./reserve-volumes.ts";

const reserved = Array.from({ length: 20 }, (_, at) => ({ spec: serverSpec(at), ids: [`${at}-a`, `${at}-b`] }));

test("volumes of eight servers are given back at a time, also if one of them cannot be", async () => {
  let under = 0;
  let most = 0;
  const released: string[] = [];
  const release = async (id: string) => {
    under += 1;
    most = Math.max(most, under);
    await Promise.resolve();
    under -= 1;
    released.push(id);
    if (id === "3-a") throw new Error("Cinder does not answer");
    return true;
  };
  await releaseVolumes({ release }, reserved);
  expect([most, released.length]).toEqual([8, 40]);
});

test("what a slow Cinder has not given back after ten seconds is left to the settler", async () => {
  let nowMs = 0;
  const released: string[] = [];
  const release = async (id: string) => {
    nowMs += 1_000;
    released.push(id);
    return true;
  };
  await releaseVolumes({ release }, reserved, { monotonic: () => nowMs });
  expect(released.length).toBe(10);
});
