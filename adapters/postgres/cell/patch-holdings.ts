import type { Pool } from "pg";
import { assert } from "../../../core/assert.ts";
import type { AllocationOutcome } from "../../../core/ledger/allocation-change.ts";
import { describeAllocationRefusal } from "../../../core/ledger/describe-allocation-refusal.ts";
import type { HoldingPatch, PatchOutcome } from "../../../core/stores/cell/operation-store.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { encodeMessage } from "../../../runtime/encode-message.ts";
import { inRounds } from "../client/in-rounds.ts";
import { arrayLiteral, textArrayLiteral } from "../client/literals.ts";
import { packBytes } from "../client/pack-bytes.ts";
import { queryStored } from "../client/store-query.ts";
import { decodeOutcome, encodeChanges } from "../ledger/encode-changes.ts";

interface PatchRow {
  readonly at: number;
  readonly outcome: string;
  readonly detail: Readonly<Record<string, unknown>> | null;
  readonly xid: number | string;
}

/** Cost: one round trip. */
export function patchHoldings(pool: Pool, patches: readonly HoldingPatch[]): Promise<readonly PatchOutcome[]> {
  return inRounds(
    patches,
    (patch) => patch.serverUuid,
    async (round) => {
      const packed = packBytes(round.map(({ spec }) => encodeMessage(ServerSpec, spec)));
      const rows = await queryStored<PatchRow>(pool, {
        name: "cell_patch_holdings",
        text: "select at, outcome, detail, xid from cell_patch_holdings($1, $2, $3, $4, $5, $6)",
        values: [
          textArrayLiteral(round.map((patch) => patch.serverUuid)),
          arrayLiteral(round.map((patch) => patch.revision)),
          packed.bytes,
          arrayLiteral(packed.starts),
          arrayLiteral(packed.lengths),
          encodeChanges(round.map((patch) => patch.change)),
        ],
      });
      const outcomes: PatchOutcome[] = [];
      for (const row of rows) outcomes[row.at - 1] = outcomeOf(row, round[row.at - 1] as HoldingPatch);
      return outcomes;
    },
  );
}

function outcomeOf(row: PatchRow, { change }: HoldingPatch): PatchOutcome {
  switch (row.outcome) {
    case "patched":
      return { kind: "patched", xid: Number(row.xid) };
    case "gone":
    case "changed":
      return { kind: row.outcome };
    case "busy":
      return { kind: "busy", running: String(row.detail?.running) };
    default: {
      const kind = row.outcome as AllocationOutcome["kind"];
      const outcome = decodeOutcome(change, { kind, generations: null, detail: row.detail });
      assert(outcome.kind !== "committed", "a committed patch is patched");
      return outcome.kind === "no-capacity" ? outcome : { kind: "stale", why: describeAllocationRefusal(outcome) };
    }
  }
}
