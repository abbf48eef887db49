import { expect, test } from "vitest";
import type { OperationFacts, PlaceOf } from "../../core/tasks/operation-facts.ts";
import type { GuestLook } from "../../core/tasks/refused-order.ts";
import { meaningOfRefusal } from "./read-refusal.ts";

const source: PlaceOf = { host: "host-1", attemptId: "build/0", items: [] };
const destination: PlaceOf = { host: "host-2", attemptId: "move/0", items: [] };
const facts = {
  kind: "resize",
  after: { uuid: "server" },
  source,
  destination,
} as Partial<OperationFacts> as OperationFacts;
const handOver = {
  kind: "ask",
  ask: "hand-over",
  stage: "handing-over",
  step: 4,
  revision: 7,
  selection: 0,
  force: false,
  place: source,
} as const;
/** The source has stopped, by an order that is not later than the one that it has refused. */
const stopped: GuestLook = { kind: "found", state: "stopped", revision: 5 };

test.each<[string, GuestLook, unknown]>([
  ["runs", { kind: "found", state: "running", revision: 3 }, { kind: "arrived", step: 4 }],
  ["has run and is stopped", { kind: "found", state: "stopped", revision: 3 }, { kind: "forgotten", step: 4 }],
  ["has never run", { kind: "found", state: "prepared", revision: 0 }, "plain"],
  ["is not there", { kind: "absent" }, "plain"],
  ["does not answer", { kind: "silent" }, "plain"],
])("a refused hand-over to a guest that %s", async (_, there, meaning) => {
  const lookAt = async (place: PlaceOf) => (place === source ? stopped : there);
  const found = await meaningOfRefusal(facts, handOver, lookAt);
  if (typeof meaning === "string") expect(found).toBe(meaning);
  else expect(found).toMatchObject(meaning as object);
});

test.each([
  ["start-source", 7, "unclear"],
  ["start-destination", 7, "unclear"],
  ["start-destination", 8, { kind: "done", step: 4 }],
] as const)(
  "a guest that runs by the order %s that was to leave it paused, and has obeyed order %d, has not obeyed this one",
  async (ask, revision, meaning) => {
    const lookAt = async (): Promise<GuestLook> => ({ kind: "found", state: "running", revision });
    const asked = { ...handOver, ask, place: destination };
    expect(await meaningOfRefusal({ ...facts, pauses: true }, asked, lookAt)).toEqual(meaning);
    expect(await meaningOfRefusal({ ...facts, pauses: false }, asked, lookAt)).toEqual({ kind: "done", step: 4 });
  },
);
