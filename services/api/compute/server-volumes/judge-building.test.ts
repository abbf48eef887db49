import { expect, test } from "vitest";
import type { Server } from "../../../../core/tasks/server.ts";
import { serverSpec } from "../../../../test/contract/cell-fixtures.ts";
import { volumeOf } from "../../../../test/rigs/begin-operation.ts";
import { judgeBuilding } from "./judge-building.ts";

const VOLUME = volumeOf(1);
const RECORD = { state: "dispatched", cell: "north" } as const;
const judge = (
  server: Partial<Server> | null,
  { guestLeft = false, record = RECORD as Parameters<typeof judgeBuilding>[1], isOld = true } = {},
) => {
  const spec = serverSpec(1, { volumes: [VOLUME] });
  const known = { status: "ACTIVE", host: "h", launchedAtMs: 1, spec, ...server } as const;
  return judgeBuilding(VOLUME.volumeId, record, server === null ? null : { server: known, guestLeft }, isOld);
};

test("a server has its volumes once it was launched, and is waited for before", () => {
  expect(judge({})).toBe("attached");
  expect(judge({ status: "ERROR" })).toBe("attached");
  expect(judge({ status: "BUILD", launchedAtMs: null })).toBe("wait");
});

test("a volume is released when the build has failed for good, and no guest is left", () => {
  const failed = { status: "ERROR", host: null, launchedAtMs: null } as const;
  expect(judge(failed)).toBe("release");
  expect(judge(failed, { guestLeft: true })).toBe("wait");
  expect(judge({ ...failed, host: "h" })).toBe("wait");
  expect(judge(null, { record: { state: "failed", cell: null } })).toBe("release");
});

test("a volume is not released for a failed request while the cell that had taken it may have a guest of the server", () => {
  const record = { state: "failed", cell: "north" } as const;
  const forgotten = (guestLeft: boolean) => judgeBuilding(VOLUME.volumeId, record, { server: null, guestLeft }, true);
  expect(judge(null, { record })).toBe("wait");
  expect(forgotten(true)).toBe("wait");
  expect(forgotten(false)).toBe("release");
  expect(judge({}, { record })).toBe("attached");
});

test("a volume is released when the servers of a call were refused together, for which a scheduler deletes each in its cell before it fails the request", () => {
  const record = { state: "failed", cell: "north" } as const;
  const takenBack = { status: "DELETED", host: null, launchedAtMs: null } as const;
  expect(judge(takenBack, { record })).toBe("release");
  expect(judge(takenBack, { record, guestLeft: true })).toBe("wait");
  expect(judge({ status: "BUILD", launchedAtMs: null }, { record })).toBe("wait");
});

test("a cell that does not answer, and a server that is not there yet or is deleted, release nothing", () => {
  expect(judge(null)).toBe("wait");
  expect(judge(null, { record: { state: "accepted", cell: null } })).toBe("wait");
  expect(judge({ status: "DELETED", host: null, launchedAtMs: null })).toBe("wait");
  expect(judgeBuilding(VOLUME.volumeId, RECORD, { server: null, guestLeft: false }, true)).toBe("wait");
});

test("the UUID of a server that was not accepted in time is closed before its volume is free", () => {
  expect(judge(null, { record: null })).toBe("close");
  expect(judge(null, { record: null, isOld: false })).toBe("wait");
});
