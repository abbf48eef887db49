import { describe, expect, test } from "vitest";
import { MemoryCellStore } from "../../adapters/memory/cell/memory-cell-store.ts";
import { MemoryLedger } from "../../adapters/memory/cell/memory-ledger.ts";
import { OPERATION_KINDS, type OperationKind } from "../../core/tasks/operation-kinds.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { numbered, serverId } from "../contract/cell-fixtures.ts";
import { volumeOf } from "../rigs/begin-operation.ts";
import type { VolumeInUse } from "../rigs/model-host.ts";
import { OperationWorldModel } from "../rigs/operation-world.ts";

/** Delivers in order, each message once. */
const inOrder = (limit: number): number => (limit === 10 ? 1 : 0);
/** Delivers in order, and every other message again at the end. */
function twice(): (limit: number) => number {
  let count = 0;
  return (limit) => {
    count += limit === 10 ? 1 : 0;
    return limit === 10 ? count % 2 : 0;
  };
}
/** Delivers in order, and the message of this number again at the end. */
function twiceOnly(at: number): (limit: number) => number {
  let count = -1;
  return (limit) => {
    if (limit !== 10) return 0;
    count += 1;
    return count === at ? 0 : 1;
  };
}
/** Delivers the last message first, so that messages overtake each other wherever they can. */
const backwards = (limit: number): number => (limit === 10 ? 1 : limit - 1);

async function openWorld(random = inOrder): Promise<OperationWorldModel> {
  const clock = new ManualClock(1_000_000);
  const ledger = new MemoryLedger();
  const store = new MemoryCellStore({ clock, ledger });
  const world = new OperationWorldModel(
    {
      store,
      ledger,
      admin: store.hostAdmin(),
      pass: async () => clock.advance(10_000),
      facts: async () => ({ ledger: await ledger.dump(), ...store.facts() }),
    },
    random,
  );
  await world.open(1);
  return world;
}

/** Operations that must precede this one. */
const BEFORE: Partial<Record<OperationKind, readonly OperationKind[]>> = {
  confirm: ["resize"],
  revert: ["resize"],
  unshelve: ["shelve-offload"],
  start: ["stop"],
  unpause: ["pause"],
  "live-migrate-paused": ["pause"],
  resume: ["suspend"],
  unrescue: ["rescue"],
  restore: ["soft-delete"],
  "attach-volume-unconfirmed": ["resize"],
  "detach-volume-unconfirmed": ["resize"],
  "swap-volume-unconfirmed": ["attach-volume", "resize"],
  "reconnect-volume-unconfirmed": ["attach-volume", "resize"],
  "attach-volume-offloaded": ["shelve-offload"],
  "detach-volume-offloaded": ["shelve-offload", "attach-volume-offloaded"],
};
const HOSTS = [1, 2];
/** Operations on a server of which nobody but its host knows which of two volumes it uses, and which one that is. */
const USED_IN_DOUBT: Partial<Record<OperationKind, VolumeInUse>> = {
  "settle-volume": "other",
  "settle-volume-own": "own",
  "settle-volume-other": "other",
};
const SWAPPED = { ...volumeOf(0), replacedBy: volumeOf(9).volumeId };

/** The host of server 0 dies while a volume of the server is replaced, when the guest uses this one, and is forced down. */
async function bringInDoubt(world: OperationWorldModel, uses: VolumeInUse): Promise<void> {
  const guest = (await world.store.servers([serverId(0)]))[0]?.attemptId ?? "";
  expect(await world.request({ server: 0, kind: "swap-volume", volume: SWAPPED })).toBe("begun");
  const isThere = async () =>
    (await world.store.positions([numbered(0xe, 1)]))[0]?.stage === "pivoting" &&
    world.hosts[0]?.uses(guest) === (uses === "own" ? "same" : "other");
  for (let limit = 0; limit < 100 && !(await isThere()); limit += 1) await world.step();
  await world.crash();
  await world.hostDies(0);
  await world.fence(0);
  await world.sweep();
  for (let limit = 0; limit < 100 && (await world.step()); limit += 1);
  expect([await statusOf(world), world.hosts[0]?.uses(guest)]).toEqual(["ERROR", uses]);
}

/** Server 0 on host 0, with the operation begun and none of its effects carried out. */
async function begun(kind: OperationKind, random = inOrder, hosts = HOSTS): Promise<OperationWorldModel> {
  const uses = USED_IN_DOUBT[kind];
  // A volume is brought into doubt in one order.
  let order = uses === undefined ? random : inOrder;
  const world = await openWorld((limit) => order(limit));
  if (uses !== undefined) await bringInDoubt(world, uses);
  if (kind === "settle-volume") {
    await world.hostReturns(0);
    for (let limit = 0; limit < 100 && (await world.step()); limit += 1);
  }
  // Messages that are delivered twice all the time might never let two operations end.
  order = ["swap-volume-unconfirmed", "reconnect-volume-unconfirmed"].includes(kind) ? inOrder : random;
  for (const earlier of BEFORE[kind] ?? []) {
    await world.request({ server: 0, kind: earlier, hosts: HOSTS });
    for (let limit = 0; limit < 100 && (await world.step()); limit += 1);
  }
  order = random;
  if (kind === "evacuate") await world.hostDies(0);
  const volume = uses === undefined ? undefined : SWAPPED;
  expect(await world.request({ server: 0, kind, hosts, ...(volume && { volume }) })).toBe("begun");
  return world;
}

async function statusOf(
  world: OperationWorldModel,
  what: "status" | "taskState" | "host" = "status",
): Promise<string | null | undefined> {
  return (await world.store.servers([serverId(0)]))[0]?.[what];
}

/** The number of events from the beginning of the operation to its end. */
async function lengthOf(kind: OperationKind): Promise<number> {
  const world = await begun(kind);
  let length = 0;
  while (await world.step()) length += 1;
  return length;
}

const KINDS = OPERATION_KINDS.map((kind) => ({ kind }));

/** Interrupts the operation after each event, and lets everything come to rest. */
async function interrupted(
  kind: OperationKind,
  interrupt: (world: OperationWorldModel) => Promise<void>,
  check: (world: OperationWorldModel, at: number) => Promise<void>,
): Promise<void> {
  const length = await lengthOf(kind);
  expect(length).toBeGreaterThan(3);
  for (let at = 0; at <= length; at += 1) {
    const world = await begun(kind);
    for (let steps = 0; steps < at; steps += 1) await world.step();
    await interrupt(world);
    expect(await world.violations(), `interrupted after ${at} of ${length}`).toEqual([]);
    await world.drain();
    expect(await world.restViolations(), `interrupted after ${at} of ${length}`).toEqual([]);
    await check(world, at);
  }
}

describe.each(KINDS)("$kind", ({ kind }) => {
  const settled = async (): Promise<string | null | undefined> => {
    const world = await begun(kind);
    while (await world.step());
    return statusOf(world);
  };

  test("ends in the same state when the conductors are killed at any of its steps", async () => {
    const expected = await settled();
    await interrupted(
      kind,
      (world) => world.crash(),
      async (world, at) => expect(await statusOf(world), `killed after ${at}`).toBe(expected),
    );
  });

  test("is overtaken by a delete at any of its steps", async () => {
    await interrupted(
      kind,
      (world) => world.delete(0),
      async (world, at) => {
        expect(await statusOf(world), `deleted after ${at}`).toBe("DELETED");
        expect(world.hosts.flatMap((host) => host.guests())).toEqual([]);
      },
    );
  });

  test.each([0, 1])("ends when host %i is lost at any of its steps and comes back", async (host) => {
    await interrupted(
      kind,
      async (world) => {
        await world.hostDies(host);
        for (let limit = 0; limit < 200 && (await world.step()); limit += 1);
        await world.hostReturns(host);
      },
      async (world, at) => {
        const [server] = await world.store.servers([serverId(0)]);
        expect(server?.taskState, `lost after ${at}`).toBe(null);
      },
    );
  });

  test("ends in the same state whichever of its messages is repeated at the end", async () => {
    const [expected, length] = [await settled(), await lengthOf(kind)];
    for (let at = 0; at <= length; at += 1) {
      const world = await begun(kind, twiceOnly(at));
      while (await world.step());
      expect(await world.violations(), `number ${at} came twice`).toEqual([]);
      await world.drain();
      expect(await world.restViolations(), `number ${at} came twice`).toEqual([]);
      expect(await statusOf(world), `number ${at} came twice`).toBe(expected);
    }
  });

  test("ends in the same state when its messages overtake each other", async () => {
    const world = await begun(kind, backwards);
    while (await world.step());
    await world.drain();
    expect(await world.restViolations()).toEqual([]);
    expect(await statusOf(world)).toBe(await settled());
  });

  test("ends in the same state when messages are delivered twice", async () => {
    const world = await begun(kind, twice());
    for (let steps = 0; steps < 60; steps += 1) await world.step();
    await world.drain();
    expect(await world.restViolations()).toEqual([]);
    expect(await statusOf(world)).toBe(await settled());
  });
});

describe("the replacement of a volume", () => {
  // The laws of the world say whether Cinder was told what is true of the guest.
  test.each([0, 50])(
    "tells Cinder only what is certain when its host is forced down at any of its steps, of which %i %% fail",
    async (failures) => {
      await interrupted(
        "swap-volume",
        async (world) => {
          world.failures = failures;
          for (let steps = 0; failures > 0 && steps < 7; steps += 1) await world.step();
          await world.hostDies(0);
          for (let limit = 0; limit < 200 && (await world.step()); limit += 1);
          await world.fence(0);
          for (let limit = 0; limit < 200 && (await world.step()); limit += 1);
          await world.hostReturns(0);
        },
        async (world, at) => expect(["ACTIVE", "ERROR"], `forced down after ${at}`).toContain(await statusOf(world)),
      );
    },
  );

  test("tells Cinder only what is certain when its steps fail and are told late, in a hundred orders", async () => {
    for (let seed = 1; seed <= 100; seed += 1) {
      let state = seed * 2_654_435_761;
      const world = await begun("swap-volume", (limit) => {
        state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
        return Math.floor((state / 2 ** 31) * limit);
      });
      world.failures = 40;
      for (let steps = 0; steps < 12; steps += 1) await world.step();
      await world.crash();
      await world.sweep();
      for (let steps = 0; steps < 12; steps += 1) await world.step();
      await world.drain();
      expect(await world.restViolations(), `seed ${seed}`).toEqual([]);
    }
  });
});

describe("a rebuild of a boot volume", () => {
  // The laws of the world say whether a guest ran while Cinder filled the volume.
  test("ends, with one guest at most that runs, when its steps fail and are told late, in a hundred orders", async () => {
    const ends = new Set<unknown>();
    for (let seed = 1; seed <= 100; seed += 1) {
      let state = seed * 2_654_435_761;
      const world = await begun("reimage", (limit) => {
        state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
        return Math.floor((state / 2 ** 31) * limit);
      });
      [world.failures, world.cinder.fillLag, world.cinder.isLate] = [40, 3, seed % 3 === 0];
      for (let steps = 0; steps < 10; steps += 1) await world.step();
      await world.crash();
      await world.sweep();
      for (let steps = 0; steps < 10; steps += 1) await world.step();
      await world.drain();
      expect(await world.restViolations(), `seed ${seed}`).toEqual([]);
      ends.add(await statusOf(world));
    }
    expect(ends).toEqual(new Set(["ACTIVE", "ERROR"]));
  });

  const again: readonly OperationKind[] = ["hard-reboot", "rebuild", "reimage", "evacuate", "restore"];
  test.each(again)(
    "that the conductor has given up too early lets a later %s start no guest before Cinder has filled the volume, also while Cinder is silent at times, in a hundred orders",
    async (kind) => {
      const ends = new Set<unknown>();
      let early = 0;
      for (let seed = 1; seed <= 100; seed += 1) {
        let state = seed * 2_654_435_761;
        const random = (limit: number): number => {
          state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
          return Math.floor((state / 2 ** 31) * limit);
        };
        const world = await begun("reimage", random);
        [world.failures, world.cinder.fillLag, world.cinder.isLate] = [10, 20, true];
        const rest = async () => {
          const isOver = async () => (await statusOf(world, "taskState")) === null;
          for (let steps = 0; steps < 100 && !(await isOver()); steps += 1) await world.step();
        };
        await rest();
        for (const before of BEFORE[kind] ?? []) {
          await world.request({ server: 0, kind: before });
          await rest();
        }
        if (kind === "evacuate") await world.hostDies(0);
        world.cinder.isSilent = () => random(3) === 0;
        const isFilling = world.cinder.isFilling(serverId(0));
        if ((await world.request({ server: 0, kind, hosts: HOSTS })) === "begun" && isFilling) early += 1;
        world.cinder.isLate = false;
        for (let steps = 0; steps < 10; steps += 1) await world.step();
        await world.crash();
        await world.sweep();
        for (let steps = 0; steps < 10; steps += 1) await world.step();
        await world.drain();
        expect(await world.restViolations(), `seed ${seed}`).toEqual([]);
        ends.add(await statusOf(world));
      }
      expect(ends).toContain("ACTIVE");
      expect(early).toBeGreaterThan(20);
    },
  );
});

describe("an evacuation", () => {
  const rush = async (world: OperationWorldModel): Promise<void> => {
    for (let limit = 0; limit < 200 && (await world.step()); limit += 1);
  };

  test("keeps the old guest while its destination is silent, although the source is back", async () => {
    await interrupted(
      "evacuate",
      async (world) => {
        await world.hostDies(1);
        await rush(world);
        await world.hostReturns(0);
        await rush(world);
      },
      async (world, at) => expect(await statusOf(world), `silent after ${at}`).toBe("ACTIVE"),
    );
  });

  test("goes to the next host, or back, when its destination is forced down instead", async () => {
    const ends = new Set<string | null | undefined>();
    for (const hosts of [[1], [1, 2]])
      for (const returns of [0, 3]) {
        const world = await begun("evacuate", inOrder, hosts);
        while ((await statusOf(world, "taskState")) !== "rebuild_spawning") await world.step();
        await world.hostDies(1);
        await world.hostReturns(returns);
        await rush(world);
        expect(await statusOf(world, "taskState")).toBe("rebuild_spawning");
        await world.fence(1);
        await rush(world);
        expect([await statusOf(world), await statusOf(world, "taskState")]).toEqual(["ACTIVE", null]);
        ends.add(await statusOf(world, "host"));
        await world.drain();
        expect(await world.restViolations()).toEqual([]);
      }
    expect([...ends].sort()).toEqual(["host-0", "host-2"]);
  });
});

describe("a delete", () => {
  const FROM = [
    ...OPERATION_KINDS.map((kind) => ({ kind, from: `after ${kind}` })),
    { kind: null, from: "of what runs" },
  ];
  test.each(FROM)(
    "ends in the same state when the conductors are killed at any of its steps, $from",
    async ({ kind }) => {
      let isOffloaded = false;
      const ready = async (): Promise<OperationWorldModel> => {
        const world = kind === null ? await openWorld() : await begun(kind);
        while (await world.step());
        isOffloaded = (await statusOf(world)) === "SHELVED_OFFLOADED";
        await world.delete(0);
        return world;
      };
      const uninterrupted = await ready();
      let length = 0;
      while (await uninterrupted.step()) length += 1;
      // A server without a host is deleted at once.
      if (!isOffloaded) expect(length).toBeGreaterThan(2);
      for (let at = 0; at <= length; at += 1) {
        const world = await ready();
        for (let steps = 0; steps < at; steps += 1) await world.step();
        await world.crash();
        expect(await world.violations(), `killed after ${at} of ${length}`).toEqual([]);
        await world.drain();
        expect(await world.restViolations(), `killed after ${at} of ${length}`).toEqual([]);
        expect(await statusOf(world)).toBe("DELETED");
        expect(world.hosts.flatMap((host) => host.guests())).toEqual([]);
      }
    },
  );
});
