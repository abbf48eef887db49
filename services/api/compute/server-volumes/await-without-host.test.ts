import { expect, test } from "vitest";
import type { TaskOutcome } from "../../../../core/tasks/task-record.ts";
import { ManualClock } from "../../../../runtime/manual-clock.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import { awaitWithoutHost } from "./await-without-host.ts";

type Outcome = TaskOutcome | "open" | null;

/** Waits for an operation that has these outcomes at one look after the other, the last one for ever. Returns how often it was looked at, and how long that took. */
async function waited(...outcomes: readonly (Outcome | "silent")[]) {
  const clock = new ManualClock();
  let looks = 0;
  const operations = async (ask: (store: object) => Promise<unknown>) => {
    const outcome = outcomes[Math.min(looks, outcomes.length - 1)] ?? null;
    looks += 1;
    if (outcome === "silent") return { kind: "silent" };
    return { kind: "answer", value: await ask({ outcomes: async () => [outcome] }) };
  };
  let isOver = false;
  const cell = { operations } as unknown as Pick<CellClient, "operations">;
  const waiting = awaitWithoutHost(cell, "task", clock).then(() => {
    isOver = true;
  });
  for (let step = 0; step < 10_000 && !isOver; step += 1) {
    for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
    if (!isOver) clock.advance(10);
  }
  await waiting;
  return { looks, tookMs: clock.monotonic() };
}

test("a call goes on as soon as the operation has ended, whatever its outcome is, or when there is none", async () => {
  for (const outcome of ["success", "error", null] as const) {
    expect(await waited(outcome)).toEqual({ looks: 1, tookMs: 0 });
    expect(await waited("open", "open", outcome)).toEqual({ looks: 3, tookMs: 60 });
  }
});

test("a call does not wait for a cell that does not answer, nor for long for an operation that goes on", async () => {
  expect(await waited("silent")).toEqual({ looks: 1, tookMs: 0 });
  expect(await waited("open", "silent")).toMatchObject({ looks: 2 });
  const { looks, tookMs } = await waited("open");
  expect(looks).toBeLessThan(20);
  expect(tookMs).toBeGreaterThanOrEqual(5_000);
  expect(tookMs).toBeLessThan(6_000);
});
