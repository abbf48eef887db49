import { expect, test } from "vitest";
import { systemClock } from "../../../../runtime/clock.ts";
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
