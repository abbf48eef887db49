import { expect, test } from "vitest";
import { CellEvent, EventKind } from "../../proto/gen/berth/cell.ts";
import { readCellEvents } from "./read-cell-events.ts";

const event = CellEvent.create({
  ...{
    kind: EventKind.EVENT_KIND_ATTEMPT_FAILED,
    cell: "c".repeat(60),
    host: "h".repeat(500),
    atMs: 1_700_000_000_000,
  },
  ...{ serverUuid: "5a2e0d2e-1111-4222-8333-444455556666", reason: "\u{1f600}".repeat(500) },
});

test("the events of the largest message that a conductor sends are read", () => {
  const more = Array.from({ length: 63 }, () => event);
  expect(readCellEvents(CellEvent.encode({ ...event, more }).finish())).toHaveLength(64);
});

test.each([
  ["is no message", new Uint8Array([0xff, 0xff])],
  ["has a hundred thousand empty events", Buffer.alloc(200_000, Buffer.from([0x3a, 0]))],
  ["nests events a hundred thousand deep", Buffer.alloc(300_000, Buffer.from([0x3a, 0xff, 0x7f]))],
  ["is larger than those of a conductor", CellEvent.encode({ ...event, reason: "x".repeat(600_000) }).finish()],
])("a message that %s is not read", (_, data) => {
  expect(readCellEvents(data)).toBeNull();
});
