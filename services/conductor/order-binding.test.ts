import { expect, test } from "vitest";
import { OrderBinding } from "./order-binding.ts";

test("the end of an abandoned wait does not let a third one begin beside the second", async () => {
  const ends: ((outcome: unknown) => void)[] = [];
  const needs = { meet: () => new Promise((resolve) => ends.push(resolve)), plugged: () => null };
  const after = { uuid: "server", ports: [], volumes: [] };
  const facts = { kind: "attach-volume", after, volume: { volumeId: "volume" } };
  const binding = new OrderBinding(needs as never, facts as never, {} as never);
  let present = 1;
  const ask = (step: number) => {
    const asked = { ask: "attach-volume", step, selection: 0, place: { host: "host", attemptId: "a", items: [] } };
    return binding.holdsUp(
      asked as never,
      () => step === present,
      () => undefined,
    );
  };
  ask(1);
  present = 2;
  ask(2);
  ends[0]?.({ kind: "unwanted" });
  await new Promise(setImmediate);
  expect(ask(2)).toBe(true);
  expect(ends).toHaveLength(2);
});
