import type { PoolClient } from "pg";
import { assert } from "../../../core/assert.ts";
import type { AllocationChange } from "../../../core/ledger/allocation-change.ts";
import { type GroupConflict, isHardGroup, LEAVING_STATES, serversPerHostMax } from "../../../core/tasks/group-rule.ts";
import type { ServerGroupMembership } from "../../../proto/gen/berth/shared.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { queryRows } from "../client/store-query.ts";

/** A claim of a host for a server that may be of a group. */
export interface GroupedClaim {
  readonly serverUuid: string;
  readonly group: ServerGroupMembership | undefined;
  readonly host: string;
}

/**
 * Locks the groups of the claims until the transaction ends, and returns the claims that their groups refuse, by position. Must precede any
 * other lock of the transaction.
 */
export async function joinGroups(
  client: PoolClient,
  claims: readonly GroupedClaim[],
): Promise<ReadonlyMap<number, GroupConflict>> {
  const grouped = claims.flatMap(({ serverUuid, group, host }, at) =>
    isHardGroup(group) ? [{ serverUuid, group, host, at }] : [],
  );
  const conflicts = new Map<number, GroupConflict>();
  if (grouped.length === 0) return conflicts;
  const rows = await queryRows<{ at: number; conflicting: string[]; in_flight: boolean }>(client, {
    name: "cell_claim_groups",
    text: "select at, conflicting, in_flight from cell_claim_groups($1, $2, $3, $4, $5, $6)",
    values: [
      textArrayLiteral(grouped.map(({ serverUuid }) => serverUuid)),
      textArrayLiteral(grouped.map(({ group }) => group.uuid)),
      textArrayLiteral(grouped.map(({ group }) => group.policy)),
      arrayLiteral(grouped.map(({ group }) => serversPerHostMax(group))),
      textArrayLiteral(grouped.map(({ host }) => host)),
      textArrayLiteral(LEAVING_STATES),
    ],
  });
  for (const row of rows) {
    const refused = grouped[row.at - 1];
    assert(refused !== undefined, `an answer for claim ${row.at} of ${grouped.length}`);
    const policy = refused.group.policy === "affinity" ? "affinity" : "anti-affinity";
    conflicts.set(refused.at, { kind: "group-conflict", policy, hosts: row.conflicting, inFlight: row.in_flight });
  }
  return conflicts;
}

/** A generation that no consumer reaches. */
const NEVER = 2_147_483_647;

/**
 * The change in a form that the ledger refuses. A claim that its group refused goes through the same statement as the others, and writes
 * nothing.
 */
export function withheld(change: AllocationChange): AllocationChange {
  const steps = change.steps.map((step) => (step.kind === "replace" ? { ...step, expected: NEVER } : step));
  return { ...change, steps };
}
