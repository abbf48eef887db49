import { describe, expect, test } from "vitest";
import { type DrainedServer, type DrainKnowledge, nextDrainStep } from "./drain-step.ts";

const known = (rest: Partial<DrainKnowledge> = {}): DrainKnowledge => ({
  ...{ host: "old", live: false, foundAs: "resident", accepted: "none", refusal: null },
  ...rest,
});
const server = (rest: Partial<DrainedServer> = {}): DrainedServer => ({
  ...{ status: "ACTIVE", host: "old", taskState: null },
  ...rest,
});
const kindOf = (shown: DrainedServer | null, rest: Partial<DrainKnowledge> = {}) =>
  nextDrainStep(shown, known(rest)).kind;

describe("the next step of a drain for one server", () => {
  test("is a cold migration, or with --live a live one of a running server", () => {
    const migrate = { kind: "act", as: "move", body: { migrate: null } };
    expect(nextDrainStep(server(), known())).toEqual(migrate);
    expect(nextDrainStep(server({ status: "SHUTOFF" }), known({ live: true }))).toEqual(migrate);
    const body = { "os-migrateLive": { host: null, block_migration: "auto" } };
    for (const status of ["ACTIVE", "PAUSED"])
      expect(nextDrainStep(server({ status }), known({ live: true }))).toEqual({ kind: "act", as: "move", body });
  });

  test("is to wait while another action or the build is under way, on this host or on the next", () => {
    expect(kindOf(server({ taskState: "rebuilding" }))).toBe("wait");
    expect(kindOf(server({ status: "BUILD" }))).toBe("wait");
    expect(kindOf(server({ host: "new", taskState: "resize_finish" }), { accepted: "move" })).toBe("wait");
    // A refusal may come from another drain of the same host, whose move goes on.
    expect(kindOf(server({ taskState: "resize_prep" }), { refusal: "busy" })).toBe("wait");
  });

  test("is to wait while the server's cell does not answer, because its host is unknown then", () => {
    expect(kindOf(server({ status: "UNKNOWN", host: null }))).toBe("wait");
    expect(kindOf(server({ status: "UNKNOWN", host: null }), { accepted: "move" })).toBe("wait");
  });

  test("is the confirmation of its own move and of a migration that an interrupted drain left behind", () => {
    const moved = server({ host: "new", status: "VERIFY_RESIZE" });
    const confirm = { kind: "act", as: "confirm", body: { confirmResize: null } };
    expect(nextDrainStep(moved, known({ accepted: "move" }))).toEqual(confirm);
    expect(nextDrainStep(moved, known({ foundAs: "unconfirmed-migration" }))).toEqual(confirm);
  });

  test("never confirms a user's resize", () => {
    const resized = server({ host: "new", status: "VERIFY_RESIZE" });
    expect(nextDrainStep(resized, known({ foundAs: "unconfirmed-resize" }))).toMatchObject({
      kind: "stayed",
      why: expect.stringContaining("resized to new"),
    });
    // The drain found the server at home, and a user's resize came first.
    expect(kindOf(resized)).toBe("look-again");
    expect(kindOf(resized, { refusal: "Cannot 'migrate' instance while it is in task_state resize_prep" })).toBe(
      "look-again",
    );
  });

  test("is none once the server has left or was deleted", () => {
    expect(kindOf(null)).toBe("gone");
    expect(kindOf(server({ host: "new" }), { accepted: "move" })).toBe("left");
    expect(kindOf(server({ host: null, status: "SHELVED_OFFLOADED" }))).toBe("left");
    expect(kindOf(server({ host: "new" }), { accepted: "confirm" })).toBe("left");
  });

  test("is none after a refusal, a failed move or a failed confirmation, and says which", () => {
    expect(nextDrainStep(server(), known({ refusal: "no" }))).toEqual({ kind: "stayed", why: "no", hasEvents: false });
    expect(nextDrainStep(server(), known({ accepted: "move" }))).toMatchObject({ kind: "stayed", hasEvents: true });
    const moved = server({ host: "new", status: "VERIFY_RESIZE" });
    expect(nextDrainStep(moved, known({ accepted: "confirm" }))).toMatchObject({ kind: "stayed", hasEvents: true });
    expect(nextDrainStep(moved, known({ accepted: "move", refusal: "no" }))).toEqual({
      ...{ kind: "stayed", hasEvents: false },
      why: "it was moved to new, but the move could not be confirmed: no",
    });
  });

  test("is not repeated when the api accepts or refuses it and the server does not change", () => {
    for (const host of ["old", "new", null])
      for (const status of ["ACTIVE", "SHUTOFF", "VERIFY_RESIZE", "ERROR", "SHELVED"])
        for (const foundAs of ["resident", "unconfirmed-migration", "unconfirmed-resize"] as const) {
          const after = nextDrainStep(server({ host, status }), known({ foundAs }));
          if (after.kind !== "act") continue;
          expect(kindOf(server({ host, status }), { foundAs, accepted: after.as })).not.toBe("act");
          expect(kindOf(server({ host, status }), { foundAs, refusal: "no" })).not.toBe("act");
        }
  });
});
