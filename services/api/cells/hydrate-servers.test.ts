import { expect, test } from "vitest";
import type { RequestRecord } from "../../../core/stores/api/api-store.ts";
import type { Server, ServerStatus } from "../../../core/tasks/server.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { type Cells, hydrateServers, keyInCell, knownServer } from "./hydrate-servers.ts";

const UUID = "00000000-0000-4000-8000-000000000001";

/** A request that a call for several servers has made, and how often its spec was read, which the database decodes then. */
function requestOf(reservationId: string) {
  const reads = { spec: 0 };
  const record: RequestRecord = {
    ...{ serverUuid: UUID, state: "dispatched", cell: "east", assignment: 0, changes: null, fault: null },
    ...{ cancellation: null, createdAtMs: 1, updatedAtMs: 2, softlyDeleted: false },
    get spec() {
      reads.spec += 1;
      return ServerSpec.fromPartial({ uuid: UUID, name: "as requested", reservationId });
    },
  };
  return { record, reads };
}

const serverIn = (status: ServerStatus): Server => ({
  ...{ uuid: UUID, status, taskState: null, spec: ServerSpec.fromPartial({ uuid: UUID, name: "in the cell" }) },
  ...{ host: "host-1", attemptId: null, fault: null, createdAtMs: 1, updatedAtMs: 2, launchedAtMs: 2 },
  ...{ deletedAtMs: status === "DELETED" ? 3 : null, revision: 1 },
});

test("a server is shown as its cell has it, and the spec of its request is not decoded", () => {
  const { record, reads } = requestOf("r-1");
  const { server, inCell } = knownServer(record, serverIn("ACTIVE"), false);
  expect([server.spec.name, inCell, reads.spec]).toEqual(["in the cell", true, 0]);
});

test.each([
  ["r-1", "BUILD", false],
  ["", "DELETED", true],
] as const)(
  "a server that its cell has deleted, of a request with the reservation '%s', is shown as %s",
  (reservationId, status, isInCell) => {
    const { server, inCell } = knownServer(requestOf(reservationId).record, serverIn("DELETED"), false);
    expect([server.status, inCell]).toEqual([status, isInCell]);
  },
);

test("a cell is not asked about the servers that it has told already, but about those that only another cell has told", async () => {
  const { record } = requestOf("");
  const asked: (readonly string[])[] = [];
  const servers = async (uuids: readonly string[]) => {
    asked.push(uuids);
    return { kind: "answer", value: [serverIn("SHUTOFF")] };
  };
  const cells = new Map([["east", { servers }]]) as unknown as Cells;
  const shown = async (teller: string, status: ServerStatus) => {
    const read = new Map([[keyInCell(teller, UUID), serverIn(status)]]);
    return (await hydrateServers([record], cells, { withDeleted: false, read })).map(({ server }) => server.status);
  };
  expect([await shown("east", "ACTIVE"), await shown("east", "DELETED"), asked]).toEqual([["ACTIVE"], [], []]);
  expect([await shown("west", "ACTIVE"), asked]).toEqual([["SHUTOFF"], [[UUID]]]);
});
