import { expect, test } from "vitest";
import type { ConductorStream } from "../../core/agent/link.ts";
import { type AttemptReport, GuestState } from "../../proto/gen/berth/agent.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { AttemptReporter } from "./attempt-reporter.ts";
import { GuestStore } from "./guest-store.ts";
import { createMemoryJournal } from "./memory-journal.ts";

const NAME = { host: "host-1", serverUuid: "server-1", attemptId: "task-1/0" };

test("says with a failed attempt that nothing is left of it, once that is durable, and never with another one", async () => {
  const store = await GuestStore.open(createMemoryJournal({ records: [] }), new ManualClock());
  const reports: AttemptReport[] = [];
  const stream = {
    closed: false,
    send: ({ body }: { readonly body?: { readonly $case: string; readonly value: unknown } }) =>
      void reports.push(body?.value as AttemptReport),
  };
  const reporter = new AttemptReporter(store, () => null);
  reporter.attach(NAME, stream as unknown as ConductorStream);
  const tell = () => reporter.reportState(store.guest(NAME.host, NAME.attemptId)!);

  await store.record({ kind: "guest", ...NAME, state: "building", atMs: 0 });
  tell();
  const recorded = store.record({
    kind: "failed",
    ...NAME,
    failure: "reschedule",
    reason: "the disk is full",
    atMs: 0,
  });
  tell();
  await recorded;
  tell();
  expect(reports.map(({ state, nothingLeft }) => [state, nothingLeft])).toEqual([
    [GuestState.GUEST_STATE_BUILDING, undefined],
    [GuestState.GUEST_STATE_BUILDING, undefined],
    [GuestState.GUEST_STATE_FAILED, true],
  ]);
});
