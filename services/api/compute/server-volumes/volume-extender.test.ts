import { expect, test } from "vitest";
import { systemClock } from "../../../../runtime/clock.ts";
import { ManualClock } from "../../../../runtime/manual-clock.ts";
import { eventually } from "../../../../test/rigs/eventually.ts";
import { VolumeExtender } from "./volume-extender.ts";

const CALLER = { requestId: "", userId: "", projectId: "" };
const event = (nth: number) => ({ serverUuid: `server-${nth}`, volumeId: `volume-${nth}` });

/** An extender that follows one volume at a time, and lets one more wait. `ask` looks up a volume. */
function extenderOf(ask: (id: string) => Promise<void>) {
  const left: string[] = [];
  const deps = {
    volumes: {
      volumes: async ([id = ""]: readonly string[]) => {
        await ask(id);
        return [];
      },
    },
    store: { requests: async () => [] },
    ...{ cells: new Map(), clock: systemClock },
    events: {
      volumeNotExtended: (one: { volumeId: string }, error: Error) => left.push(`${one.volumeId}: ${error.message}`),
    },
  };
  return { left, extender: new VolumeExtender(deps as never, { running: 1, waiting: 1 }) };
}

test("a volume beyond those that are followed waits for its turn, and one beyond those that wait is named in the log", async () => {
  const asked: string[] = [];
  const held = Promise.withResolvers<void>();
  const { extender, left } = extenderOf(async (id) => {
    asked.push(id);
    await held.promise;
  });
  extender.hear([event(1), event(2), event(2), event(3)], CALLER);
  expect(left).toEqual(["volume-3: 1 other extended volumes wait already"]);
  await eventually("the first one", () => asked.length === 1);
  held.resolve();
  await eventually("the second one", () => asked.length === 2);
  await extender.stop();
  expect([asked.length, left.length]).toEqual([2, 1]);
});

test("an api that stops says which volumes it has not followed", async () => {
  const held = Promise.withResolvers<void>();
  const { extender, left } = extenderOf(() => held.promise);
  extender.hear([event(1), event(2)], CALLER);
  const stopping = extender.stop();
  extender.hear([event(3)], CALLER);
  held.resolve();
  await stopping;
  expect(left).toEqual(["volume-2: the api stops", "volume-3: the api stops"]);
});

test("a volume that the cell has not noted yet is looked at again, and one that is being detached is left", async () => {
  const clock = new ManualClock();
  const left: string[] = [];
  let phase = "attaching";
  const looks: string[] = [];
  const cell = { name: "c-1", server: async () => ({ kind: "answer", value: { spec: { volumes: [] } } }) };
  const deps = {
    volumes: {
      volumes: async ([id = ""]: readonly string[]) => {
        looks.push(phase);
        return [{ id, attachment: { serverUuid: "server-1", phase } }];
      },
      sizeGibOf: async () => 2,
    },
    store: { requests: async () => [{ cell: "c-1" }] },
    ...{ cells: new Map([["c-1", cell]]), clock },
    events: { volumeNotExtended: (_one: unknown, error: Error) => left.push(error.message) },
  };
  const extender = new VolumeExtender(deps as never);
  extender.hear([event(1)], CALLER);
  const lookUntil = (description: string, condition: () => boolean) =>
    eventually(description, () => {
      clock.advance(2_000);
      return condition();
    });
  await lookUntil("the second look", () => looks.length >= 2);
  phase = "detaching";
  await lookUntil("the last look", () => looks.includes("detaching"));
  await extender.stop();
  expect(left).toEqual([]);
  expect(looks.filter((one) => one === "detaching")).toHaveLength(1);
});
