import { expect, it } from "vitest";
import { consumerUuid, providerUuid, resourceClass } from "../ledger/ids.ts";
import { capacityFactsOf } from "./audit-cloud.ts";
import { checkCapacity } from "./check-capacity.ts";
import type { CellReading } from "./facts.ts";

const HOST = providerUuid("r1");
const VCPU = resourceClass("VCPU");

/** A cell in which 9 VCPU of 8 are in use. */
function cell(kept: CellReading["kept"] = []): CellReading {
  const inventory = { total: 8, reserved: 0, minUnit: 1, maxUnit: 8, stepSize: 1, allocationRatio: 1, used: 9 };
  const host = { uuid: HOST, name: "h", parent: null, root: HOST, generation: 0, traits: new Set<never>() };
  const owner = { generation: 1, projectId: "p", userId: "u", type: "INSTANCE" };
  return {
    ...{ cell: "c", servers: [], closed: new Set(), openTasks: [], moves: [], hosts: new Map(), upMs: new Map() },
    ...{ runningGuests: new Map(), copies: new Map(), kept },
    ledger: {
      providers: [{ ...host, aggregates: new Set(), inventories: new Map([[VCPU, inventory]]) }],
      consumers: [{ uuid: consumerUuid("s1"), ...owner, items: [{ provider: HOST, resourceClass: VCPU, amount: 9 }] }],
    },
  };
}

it.each([
  ["a host that has shrunk below its use", { used: 9, byReport: true }, 0],
  ["a claim on top of what a shrunk host had in use", { used: 8, byReport: true }, 1],
  ["a use beyond the capacity that no report has brought about", { used: 9, byReport: false }, 1],
])("tells a host that offers less than before from a claim beyond the capacity: %s", (_, use, violations) => {
  const kept = [{ provider: HOST, name: "h", resourceClass: VCPU, capacity: 8, ...use }];
  expect(checkCapacity(capacityFactsOf(cell(kept)))).toHaveLength(violations);
  expect(checkCapacity(capacityFactsOf(cell()))).toHaveLength(1);
});
