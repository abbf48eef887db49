import { expect, test } from "vitest";
import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import type { HostAdminStore } from "../../core/stores/cell/host-admin-store.ts";
import type { QuarantineAdmin } from "../../core/stores/cell/quarantine.ts";
import { numbered, serverId, taskId } from "./cell-fixtures.ts";

interface Subject {
  readonly cell: CellStore;
  readonly admin: HostAdminStore;
  readonly quarantine: QuarantineAdmin;
}

/** Server 1 is ACTIVE on host-0 by the first attempt of task 1, and host-1 has never had it. */
export function testInventedGuests(subject: () => Subject): void {
  /** It pretends to have obeyed a later order than the database knows of. */
  const guest = {
    ...{ host: "host-1", serverUuid: serverId(1), attemptId: `${numbered(0xe, 7)}/0` },
    ...{ state: "running", revision: 1_000, incarnation: "" },
  };
  const isHeldUp = async () => {
    const [held] = await subject().cell.othersInQuarantine([{ serverUuid: serverId(1), attemptId: `${taskId(1)}/0` }]);
    return held;
  };

  test("a guest of a server that was never on the host, which the host lists only after a comparison, does not hold up its server", async () => {
    const { cell, quarantine } = subject();
    const incarnation = await cell.incarnation();
    const holds = async () => (await quarantine.quarantined()).map((one) => one.holds);
    const compared = (host: string) => ({ host, incarnation });
    await cell.noteCompared([compared("host-1")]);
    await cell.noteCompared([compared("host-1"), compared("host-0")]);
    expect(await cell.judgeGuests([guest])).toEqual([
      { kind: "quarantined", reason: expect.stringContaining("the server is not held up") },
    ]);
    expect([await holds(), await isHeldUp()]).toEqual([[false], false]);
    // The host on which the server is, or was to be, may have a guest that was forgotten.
    expect((await cell.judgeGuests([{ ...guest, host: "host-0" }]))[0]?.reason).not.toContain("held up");
    expect([await holds(), await isHeldUp()]).toEqual([[true, false], true]);
  });

  test("the first comparison with a restored database may find guests that hold up their servers", async () => {
    const { cell, quarantine } = subject();
    await cell.noteCompared([{ host: "host-1", incarnation: await cell.incarnation() }]);
    await quarantine.renewIncarnation();
    expect(await cell.judgeGuests([guest])).toMatchObject([{ kind: "quarantined" }]);
    expect(await isHeldUp()).toBe(true);
  });

  test("a host with a guest in quarantine is not removed until an operator has condemned the guest, and is then compared as a new one", async () => {
    const { cell, admin, quarantine } = subject();
    await cell.noteCompared([{ host: "host-1", incarnation: await cell.incarnation() }]);
    await cell.judgeGuests([guest]);
    expect(await admin.removeHost("host-1", 0)).toBe("has-quarantined-guests");
    expect(await quarantine.condemn([serverId(1)])).toBe(1);
    expect(await admin.removeHost("host-1", 0)).toBe("removed");
    expect(await quarantine.quarantined()).toEqual([]);
    // Nothing is known of what the host listed before, so that its guest may be one that was forgotten.
    expect(await cell.judgeGuests([guest])).toMatchObject([{ kind: "quarantined" }]);
    expect(await isHeldUp()).toBe(true);
  });

  test("a guest of an unknown server that its agent has found is kept, also after a comparison, and any other one is unknown", async () => {
    const { cell, quarantine } = subject();
    const incarnation = await cell.incarnation();
    await cell.noteCompared([{ host: "host-1", incarnation }]);
    const found = { ...guest, serverUuid: serverId(9), revision: 0, incarnation, isFound: true };
    expect(await cell.judgeGuests([{ ...found, isFound: false }])).toEqual([{ kind: "unknown", reason: null }]);
    expect(await cell.judgeGuests([found])).toEqual([
      { kind: "quarantined", reason: expect.stringContaining("give one of the two hosts another name") },
    ]);
    expect(await quarantine.quarantined()).toMatchObject([{ serverUuid: serverId(9), holds: false }]);
  });

  test("a guest that its agent has found is destroyed if the database knows that its server is elsewhere", async () => {
    const { cell } = subject();
    const incarnation = await cell.incarnation();
    await cell.noteCompared([{ host: "host-1", incarnation }]);
    const found = { ...guest, attemptId: `${taskId(1)}/0`, revision: 0, incarnation, isFound: true };
    expect(await cell.judgeGuests([found])).toEqual([{ kind: "destroy", reason: null }]);
  });
}
