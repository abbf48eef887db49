import { describe, expect, test } from "vitest";
import { OPERATIONS } from "./operation-kinds.ts";
import { SERVER_STATUSES } from "./server.ts";
import { nextSoftDeletionStep, RESTORE_TRIES_MAX } from "./soft-deletion.ts";

const at = (status: (typeof SERVER_STATUSES)[number], over = {}) => ({
  ...{ status, taskState: null, host: "host-1" as string | null, ...over },
});

describe("the next step of a soft deletion", () => {
  test("is an operation that the status allows, for each status of a server that has a host", () => {
    for (const status of SERVER_STATUSES) {
      const step = nextSoftDeletionStep("deleted", at(status), 0);
      if (step.kind !== "begin" || status === "BUILD" || status === "SHELVED_OFFLOADED") continue;
      expect([status, OPERATIONS[step.operation].allowedFrom.includes(status)]).toEqual([status, true]);
    }
    const kinds = SERVER_STATUSES.map((status) => nextSoftDeletionStep("deleted", at(status), 0).kind);
    expect(kinds.filter((kind) => kind === "begin")).toHaveLength(SERVER_STATUSES.length - 2);
  });

  test("waits for an operation that is under way, whatever the aim", () => {
    const busy = at("ACTIVE", { taskState: "rebuilding" });
    expect(nextSoftDeletionStep("deleted", busy, 0)).toEqual({ kind: "wait" });
    expect(nextSoftDeletionStep("restored", busy, 0)).toEqual({ kind: "wait" });
  });

  test("confirms a resize and ends a rescue before the guest is stopped", () => {
    expect(nextSoftDeletionStep("deleted", at("VERIFY_RESIZE"), 0)).toEqual({ kind: "begin", operation: "confirm" });
    expect(nextSoftDeletionStep("deleted", at("RESCUE"), 0)).toEqual({ kind: "begin", operation: "unrescue" });
    expect(nextSoftDeletionStep("deleted", at("ACTIVE"), 0)).toEqual({ kind: "begin", operation: "soft-delete" });
  });

  test("is nothing for a server that is stopped already, or that is on no host", () => {
    expect(nextSoftDeletionStep("deleted", at("SOFT_DELETED"), 0)).toEqual({ kind: "done" });
    expect(nextSoftDeletionStep("deleted", at("SHELVED_OFFLOADED", { host: null }), 0)).toEqual({ kind: "done" });
  });

  test("restores a stopped server a few times, and then leaves it deleted softly", () => {
    expect(nextSoftDeletionStep("restored", at("ACTIVE"), 0)).toEqual({ kind: "done" });
    expect(nextSoftDeletionStep("restored", at("SOFT_DELETED"), 0)).toEqual({ kind: "begin", operation: "restore" });
    expect(nextSoftDeletionStep("restored", at("SOFT_DELETED"), RESTORE_TRIES_MAX)).toEqual({ kind: "abandon" });
  });
});
