import { describe, expect, test } from "vitest";
import { seededRandom } from "../../core/scheduling/seeded-random.ts";
import type { OperationKind } from "../../core/tasks/operation-kinds.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import { volumeOf } from "../rigs/begin-operation.ts";
import { openOperationWorld } from "../rigs/begun-operation.ts";
import { inOrder } from "../rigs/delivery-orders.ts";
import type { OperationWorldModel } from "../rigs/operation-world.ts";

/** The move goes from host 0 to host 1. */
const HOSTS = [1, 2];
const VOLUME = volumeOf(0).volumeId;
const SWAPPED = { ...volumeOf(0), replacedBy: volumeOf(9).volumeId };
const serverOf = async (world: OperationWorldModel) => (await world.store.servers([serverId(0)]))[0];

async function settle(world: OperationWorldModel): Promise<void> {
  for (let steps = 0; steps < 400 && (await world.step()); steps += 1);
}

async function done(world: OperationWorldModel, kind: OperationKind): Promise<void> {
  expect(await world.request({ server: 0, kind, hosts: HOSTS })).toBe("begun");
  await settle(world);
}

/** A server whose move waits for its confirmation. The volume is about to be attached, to be detached, or to be replaced. */
async function begun(kind: Kind, random = inOrder): Promise<OperationWorldModel> {
  let order = inOrder;
  const world = await openOperationWorld((limit) => order(limit));
  if (kind !== "attach-volume-unconfirmed") await done(world, "attach-volume");
  await done(world, "migrate");
  order = random;
  const volume = kind === "swap-volume-unconfirmed" ? { volume: SWAPPED } : {};
  expect(await world.request({ server: 0, kind, hosts: [], ...volume })).toBe("begun");
  return world;
}

/** The volumes of the guest that the server has at the end, and of the server. */
async function endedBy(world: OperationWorldModel, end: "confirm" | "revert") {
  await done(world, end);
  await world.drain();
  expect(await world.restViolations()).toEqual([]);
  const server = await serverOf(world);
  expect(server).toMatchObject({ status: "ACTIVE", host: end === "confirm" ? "host-1" : "host-0", taskState: null });
  const home = world.hosts.find(({ name }) => name === server?.host);
  const inSpec = server?.spec.volumes.map(({ volumeId }) => volumeId);
  const inGuest = [...(home?.volumesOf(server?.attemptId ?? "") ?? [])];
  // A revert never starts a guest with the volume that Cinder has dropped.
  if (end === "revert")
    for (const id of inGuest)
      expect(home?.wayTo(server?.attemptId ?? "", id)).toBe(world.cinder.needs.connections.get(id) ?? "");
  return { inGuest, inSpec };
}

/** Lets the host say which volume the guest uses, if nobody else knows it. An api refuses a revert until then. */
async function settleDoubt(world: OperationWorldModel): Promise<void> {
  const doubtful = (await serverOf(world))?.spec.volumes.find(({ replacedBy }) => replacedBy !== "");
  if (doubtful === undefined) return;
  expect(await world.request({ server: 0, kind: "settle-volume", hosts: [], volume: doubtful })).toBe("begun");
  await settle(world);
  await world.drain();
  expect((await serverOf(world))?.spec.volumes).toMatchObject([{ replacedBy: "" }]);
}

const KINDS = ["attach-volume-unconfirmed", "detach-volume-unconfirmed", "swap-volume-unconfirmed"] as const;
type Kind = (typeof KINDS)[number];
const ENDS = ["confirm", "revert"] as const;
const CASES = KINDS.flatMap((kind) => ENDS.map((end) => ({ kind, end })));

async function lengthOf(kind: Kind): Promise<number> {
  const world = await begun(kind);
  let length = 0;
  while (await world.step()) length += 1;
  expect(length).toBeGreaterThan(3);
  return length;
}

describe.each(CASES)("$kind, and then a $end", ({ kind, end }) => {
  const expected = kind === "detach-volume-unconfirmed" ? [] : [VOLUME];

  test("leaves the guest the present volumes, whenever the conductors are killed", async () => {
    const length = await lengthOf(kind);
    for (let at = 0; at <= length; at += 1) {
      const world = await begun(kind);
      for (let steps = 0; steps < at; steps += 1) await world.step();
      await world.crash();
      expect(await world.violations(), `killed after ${at}`).toEqual([]);
      await world.drain();
      expect(await world.restViolations(), `killed after ${at}`).toEqual([]);
      expect(await serverOf(world)).toMatchObject({ status: "VERIFY_RESIZE", host: "host-1", taskState: null });
      expect(await endedBy(world, end), `killed after ${at}`).toEqual({ inGuest: expected, inSpec: expected });
    }
  });

  test.each([0, 1])("waits for host %i when it is lost, and ends as without that", async (host) => {
    const length = await lengthOf(kind);
    for (let at = 0; at <= length; at += 1) {
      const world = await begun(kind);
      for (let steps = 0; steps < at; steps += 1) await world.step();
      await world.hostDies(host);
      await settle(world);
      await world.hostReturns(host);
      await world.drain();
      expect(await endedBy(world, end), `lost after ${at}`).toEqual({ inGuest: expected, inSpec: expected });
    }
  });

  test.each([0, 1])("ends when host %i is forced down, and no guest has a volume of another server", async (host) => {
    const length = await lengthOf(kind);
    for (let at = 0; at <= length; at += 1) {
      const world = await begun(kind);
      for (let steps = 0; steps < at; steps += 1) await world.step();
      await world.hostDies(host);
      await settle(world);
      await world.fence(host);
      await settle(world);
      expect(await serverOf(world), `forced down after ${at}`).toMatchObject({
        status: "VERIFY_RESIZE",
        taskState: null,
      });
      await world.drain();
      expect(await world.restViolations(), `forced down after ${at}`).toEqual([]);
      if (kind === "swap-volume-unconfirmed") await settleDoubt(world);
      const { inGuest, inSpec } = await endedBy(world, end);
      expect(inSpec, `forced down after ${at}`).toEqual(expect.arrayContaining(inGuest));
    }
  });
});

test.each(CASES)("$kind keeps the laws when its steps fail and are told late, and a $end follows", async (one) => {
  const inSpec = new Set<number | undefined>();
  for (let seed = 1; seed <= 50; seed += 1) {
    const draw = seededRandom(seed);
    const world = await begun(one.kind, (limit) => Math.floor(draw() * limit));
    world.failures = 40;
    for (let steps = 0; steps < 12; steps += 1) await world.step();
    await world.crash();
    await world.sweep();
    for (let steps = 0; steps < 12; steps += 1) await world.step();
    await world.drain();
    expect(await world.restViolations(), `seed ${seed}`).toEqual([]);
    const ended = await endedBy(world, one.end);
    if (one.kind === "attach-volume-unconfirmed") expect(ended.inGuest, `seed ${seed}`).toEqual(ended.inSpec);
    inSpec.add(ended.inSpec?.length);
  }
  expect(inSpec).toEqual(new Set(one.kind === "swap-volume-unconfirmed" ? [1] : [0, 1]));
});
