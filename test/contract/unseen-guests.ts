import { expect, test } from "vitest";
import type { CellStore } from "../../core/stores/cell/cell-store.ts";
import type { HostAdminStore } from "../../core/stores/cell/host-admin-store.ts";
import type { QuarantineAdmin } from "../../core/stores/cell/quarantine.ts";
import { closingOf, dispatchOf, serverId } from "./cell-fixtures.ts";

interface Subject {
  readonly cell: CellStore;
  readonly admin: HostAdminStore;
  readonly quarantine: QuarantineAdmin;
}

/** Later than anything that is restored. */
const LATER_MS = 8_000_000_000_000;

/** There are host-0 and host-1. */
export function testUnseenGuests(subject: () => Subject): void {
  const areLeft = () => subject().cell.guestsLeft([1, 2, 3, 4].map((at) => serverId(at + 10)));
  /** Server 11 is older than the loss and server 13 is younger, server 12 is closed, and server 14 is unknown. */
  const lose = async (): Promise<string> => {
    const { cell, quarantine } = subject();
    await cell.close([closingOf(12)]);
    const dispatched = (number: number, createdAtMs: number) =>
      dispatchOf({ server: number, task: number, hosts: [0], spec: { createdAtMs } });
    await cell.dispatch([dispatched(11, 1), dispatched(13, LATER_MS)]);
    expect(await areLeft()).toEqual([false, false, false, false]);
    return quarantine.renewIncarnation();
  };

  test("a guest of a server may be left on each host that was not compared since the database has lost commits", async () => {
    const { cell } = subject();
    const incarnation = await lose();
    expect(await areLeft()).toEqual([true, true, false, true]);
    await cell.noteCompared([{ host: "host-0", incarnation }]);
    expect(await areLeft()).toEqual([true, true, false, true]);
    await cell.noteCompared([{ host: "host-1", incarnation }]);
    expect(await areLeft()).toEqual([false, false, false, false]);
  });

  test("a host that is forced down keeps no guest that was not seen, until it is back", async () => {
    const { cell, admin } = subject();
    const incarnation = await lose();
    await cell.noteCompared([{ host: "host-1", incarnation }]);
    await admin.setForcedDown("host-0", true);
    expect(await areLeft()).toEqual([false, false, false, false]);
    await admin.setForcedDown("host-0", false);
    expect(await areLeft()).toEqual([true, true, false, true]);
  });
}
