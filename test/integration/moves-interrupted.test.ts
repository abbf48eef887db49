import { describe, expect, test } from "vitest";
import { OPERATION_KINDS, type OperationKind } from "../../core/tasks/operation-kinds.ts";
import { serverId } from "../contract/cell-fixtures.ts";
import {
  begunOperation,
  DESTINATIONS,
  lengthOfOperation,
  OPERATIONS_BEFORE,
  openOperationWorld,
  statusOfFirst,
} from "../rigs/begun-operation.ts";
import { backwards, inOrder, twice, twiceOnly } from "../rigs/delivery-orders.ts";
import type { OperationWorldModel } from "../rigs/operation-world.ts";

const KINDS = OPERATION_KINDS.map((kind) => ({ kind }));

/** Interrupts the operation after each event, and lets everything come to rest. */
async function interrupted(
  kind: OperationKind,
  interrupt: (world: OperationWorldModel) => Promise<void>,
  check: (world: OperationWorldModel, at: number) => Promise<void>,
): Promise<void> {
  const length = await lengthOfOperation(kind);
  expect(length).toBeGreaterThan(3);
  for (let at = 0; at <= length; at += 1) {
    const world = await begunOperation(kind);
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
    const world = await begunOperation(kind);
    while (await world.step());
    return statusOfFirst(world);
  };

  test("ends in the same state when the conductors are killed at any of its steps", async () => {
    const expected = await settled();
    await interrupted(
      kind,
      (world) => world.crash(),
      async (world, at) => expect(await statusOfFirst(world), `killed after ${at}`).toBe(expected),
    );
  });

  test("is overtaken by a delete at any of its steps", async () => {
    await interrupted(
      kind,
      (world) => world.delete(0),
      async (world, at) => {
        expect(await statusOfFirst(world), `deleted after ${at}`).toBe("DELETED");
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
    const [expected, length] = [await settled(), await lengthOfOperation(kind)];
    for (let at = 0; at <= length; at += 1) {
      const world = await begunOperation(kind, twiceOnly(at));
      while (await world.step());
      expect(await world.violations(), `number ${at} came twice`).toEqual([]);
      await world.drain();
      expect(await world.restViolations(), `number ${at} came twice`).toEqual([]);
      expect(await statusOfFirst(world), `number ${at} came twice`).toBe(expected);
    }
  });

  test("ends in the same state when its messages overtake each other", async () => {
    const world = await begunOperation(kind, backwards);
    while (await world.step());
    await world.drain();
    expect(await world.restViolations()).toEqual([]);
    expect(await statusOfFirst(world)).toBe(await settled());
  });

  test("ends in the same state when messages are delivered twice", async () => {
    const world = await begunOperation(kind, twice());
    for (let steps = 0; steps < 60; steps += 1) await world.step();
    await world.drain();
    expect(await world.restViolations()).toEqual([]);
    expect(await statusOfFirst(world)).toBe(await settled());
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
        async (world, at) =>
          expect(["ACTIVE", "ERROR"], `forced down after ${at}`).toContain(await statusOfFirst(world)),
      );
    },
  );

  test("tells Cinder only what is certain when its steps fail and are told late, in a hundred orders", async () => {
    for (let seed = 1; seed <= 100; seed += 1) {
      let state = seed * 2_654_435_761;
      const world = await begunOperation("swap-volume", (limit) => {
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
      const world = await begunOperation("reimage", (limit) => {
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
      ends.add(await statusOfFirst(world));
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
        const world = await begunOperation("reimage", random);
        [world.failures, world.cinder.fillLag, world.cinder.isLate] = [10, 20, true];
        const rest = async () => {
          const isOver = async () => (await statusOfFirst(world, "taskState")) === null;
          for (let steps = 0; steps < 100 && !(await isOver()); steps += 1) await world.step();
        };
        await rest();
        for (const before of OPERATIONS_BEFORE[kind] ?? []) {
          await world.request({ server: 0, kind: before });
          await rest();
        }
        if (kind === "evacuate") await world.hostDies(0);
        world.cinder.isSilent = () => random(3) === 0;
        const isFilling = world.cinder.isFilling(serverId(0));
        if ((await world.request({ server: 0, kind, hosts: DESTINATIONS })) === "begun" && isFilling) early += 1;
        world.cinder.isLate = false;
        for (let steps = 0; steps < 10; steps += 1) await world.step();
        await world.crash();
        await world.sweep();
        for (let steps = 0; steps < 10; steps += 1) await world.step();
        await world.drain();
        expect(await world.restViolations(), `seed ${seed}`).toEqual([]);
        ends.add(await statusOfFirst(world));
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
      async (world, at) => expect(await statusOfFirst(world), `silent after ${at}`).toBe("ACTIVE"),
    );
  });

  test("goes to the next host, or back, when its destination is forced down instead", async () => {
    const ends = new Set<string | null | undefined>();
    for (const hosts of [[1], [1, 2]])
      for (const returns of [0, 3]) {
        const world = await begunOperation("evacuate", inOrder, hosts);
        while ((await statusOfFirst(world, "taskState")) !== "rebuild_spawning") await world.step();
        await world.hostDies(1);
        await world.hostReturns(returns);
        await rush(world);
        expect(await statusOfFirst(world, "taskState")).toBe("rebuild_spawning");
        await world.fence(1);
        await rush(world);
        expect([await statusOfFirst(world), await statusOfFirst(world, "taskState")]).toEqual(["ACTIVE", null]);
        ends.add(await statusOfFirst(world, "host"));
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
        const world = kind === null ? await openOperationWorld() : await begunOperation(kind);
        while (await world.step());
        isOffloaded = (await statusOfFirst(world)) === "SHELVED_OFFLOADED";
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
        expect(await statusOfFirst(world)).toBe("DELETED");
        expect(world.hosts.flatMap((host) => host.guests())).toEqual([]);
      }
    },
  );
});
