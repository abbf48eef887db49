import { expect, test } from "vitest";
import type { ServerStatus } from "../../../../core/tasks/server.ts";
import { serverSpec } from "../../../../test/contract/cell-fixtures.ts";
import { volumeOf } from "../../../../test/rigs/begin-operation.ts";
import { type CellLook, judgeAttachment } from "./judge-attachment.ts";

const VOLUME = volumeOf(1);
const TASK = "11111111-1111-4111-8111-111111111111";

const server = (status: ServerStatus, volumes = [VOLUME], host: string | null = "host-0") => ({
  ...{ status, host },
  spec: serverSpec(1, { volumes }),
});
const judge = (look: Partial<CellLook>, taskId: string | null = TASK, isOld = true) =>
  judgeAttachment(
    VOLUME.volumeId,
    { taskId },
    { outcome: "success", server: server("ACTIVE"), guestLeft: false, ...look },
    isOld,
  );
const without = server("ACTIVE", []);

test("an operation that has not ended is waited for, and one that has not begun is closed when it is old", () => {
  expect(judge({ outcome: "open" })).toBe("wait");
  expect(judge({ outcome: null, server: without })).toBe("close");
  expect(judge({ outcome: null, server: without }, TASK, false)).toBe("wait");
});

test("the spec says who has the volume after the operation has ended", () => {
  for (const outcome of ["success", "error"] as const) {
    expect(judge({ outcome })).toBe("attached");
    expect(judge({ outcome, server: without })).toBe("release");
  }
});

test("a volume is not released while nobody knows what a host did", () => {
  for (const outcome of ["cancelled", "deleted"] as const) expect(judge({ outcome, server: without })).toBe("wait");
  expect(judge({ outcome: "error", server: server("ERROR", []) })).toBe("wait");
  expect(judge({ outcome: "success", server: without, guestLeft: true })).toBe("wait");
});

test("a volume is released after an operation for a server on no host that no conductor could read, since no host was told of it", () => {
  const look = { outcome: "error", server: server("ERROR", [], null) } as const;
  expect(judge(look)).toBe("release");
  expect(judge({ ...look, guestLeft: true })).toBe("wait");
  expect(judge({ ...look, server: server("ERROR", [VOLUME], null) })).toBe("attached");
});

test("a volume of a server that is gone ends when no guest of the server is left", () => {
  for (const gone of [null, server("DELETED")]) {
    expect(judge({ server: gone, outcome: "cancelled" })).toBe("wait");
    expect(judge({ server: gone, guestLeft: true }, null)).toBe("wait");
    expect(judge({ server: gone }, null)).toBe("end");
  }
  expect(judge({}, null)).toBe("wait");
});
