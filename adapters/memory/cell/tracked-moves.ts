import type { MovePut, RowChange } from "../../../core/ledger/row-change.ts";
import { TrackedRows } from "./tracked-rows.ts";

type TrackedMove = Omit<MovePut, "kind">;

/** Rows of `migrations`. Followers see the ones that have not ended, and learn when one ends. */
export class TrackedMoves<Row extends TrackedMove> extends TrackedRows<Row, MovePut> {
  protected override shownOf({ uuid, serverUuid, sourceHost, destHost, ended }: Row): MovePut {
    return { kind: "move-put", uuid, serverUuid, sourceHost, destHost, ended };
  }

  protected override isSame(one: MovePut, other: MovePut): boolean {
    return one.destHost === other.destHost && one.ended === other.ended;
  }

  protected override changeOf(_: Row, shown: MovePut): RowChange {
    return shown;
  }

  protected override removalOf(): null {
    return null;
  }

  override rows(): RowChange[] {
    return Array.from(this.values(), (row) => this.shownOf(row)).filter(({ ended }) => !ended);
  }
}
