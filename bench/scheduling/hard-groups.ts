import { requestGroup } from "../../core/candidates/request.ts";
import { DEFAULT_SEARCH_LIMITS, SearchBudget } from "../../core/candidates/search-budget.ts";
import { providerUuid, resourceClass } from "../../core/ledger/ids.ts";
import { LedgerView } from "../../core/ledger/ledger-view.ts";
import type { RowChange } from "../../core/ledger/row-change.ts";
import { HostChooser } from "../../core/scheduling/host-chooser.ts";
import type { HostRequest } from "../../core/scheduling/host-request.ts";
import type { CellHosts } from "../../core/scheduling/ranking/cell-ranking.ts";
import { measuredOf, ROUNDS, report } from "../measure.ts";

const BANDWIDTH = resourceClass("NET_BW_EGR_KILOBIT_PER_SEC");
const SIZES = [1_000, 5_000];

/** Groups that ask for bandwidth, and the bandwidth of each of a host's two NICs. */
interface HardCase {
  readonly name: string;
  readonly amounts: readonly number[];
  readonly ofNic: number;
}

const CASES: readonly HardCase[] = [
  // Three of the groups need a whole NIC each, so they cannot fit into two.
  { name: "13 groups of 1 to 13 and three of half a NIC", amounts: [...upTo(13), 101, 102, 103], ofNic: 200 },
  // These groups would have to fill both NICs to the last unit, which is impossible with even amounts.
  {
    name: "16 groups that just cannot be split in two halves",
    amounts: [...upTo(15), 17].map((n) => 2 * n * n),
    ofNic: 1_529,
  },
];

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index + 1);
}

function viewOf(hosts: number, ofNic: number): LedgerView {
  const view = new LedgerView();
  const put = (uuid: string, root: string): RowChange => ({
    kind: "provider-put",
    uuid: providerUuid(uuid),
    name: uuid,
    parent: uuid === root ? null : providerUuid(root),
    root: providerUuid(root),
    generation: 0,
  });
  for (let index = 0; index < hosts; index += 1) {
    const root = `host-${index}`;
    const inventory = { total: ofNic, reserved: 0, minUnit: 1, maxUnit: ofNic, stepSize: 1, allocationRatio: 1 };
    view.apply(put(root, root));
    for (const nic of [`${root}-nic-1`, `${root}-nic-2`]) {
      view.apply(put(nic, root));
      view.apply({ kind: "inventory-put", provider: providerUuid(nic), resourceClass: BANDWIDTH, inventory, used: 0 });
    }
    view.apply({ kind: "host-put", host: root, provider: providerUuid(root), up: true, disabled: false });
  }
  return view;
}

function hostRequestOf(amounts: readonly number[]): HostRequest {
  const groups = amounts.map((amount, index) =>
    requestGroup({ suffix: `_port${index}`, resources: new Map([[BANDWIDTH, amount]]) }),
  );
  return { groups, groupPolicy: "none" };
}

/** Measures requests whose groups cannot be combined: how long a scheduler searches, and how long it blocks the event loop. */
export function reportHardGroups(): void {
  for (const { name, amounts, ofNic } of CASES) {
    for (const hosts of SIZES) {
      const cloud = { name: "cell", view: viewOf(hosts, ofNic) };
      const rounds = { search: [] as number[], turn: [] as number[] };
      for (let round = 0; round <= ROUNDS; round += 1) {
        const { searchMs, turnMs } = decideInTurns(hostRequestOf(amounts), cloud);
        // The first round only warms up.
        if (round === 0) continue;
        rounds.search.push(searchMs);
        rounds.turn.push(turnMs);
      }
      report(`${name}, ${hosts} hosts`, measuredOf(rounds.search), "ms");
      report("  its longest turn of the event loop", measuredOf(rounds.turn), "ms");
    }
  }
}

/** One decision of a scheduler that has not seen the request's class before. */
function decideInTurns(
  hostRequest: HostRequest,
  cloud: CellHosts,
): { readonly searchMs: number; readonly turnMs: number } {
  const chooser = new HostChooser();
  const search = new SearchBudget(DEFAULT_SEARCH_LIMITS, () => performance.now());
  const options = { seed: 1, alternates: 2, weighers: [], spread: 5, spreadTolerance: 0.05 };
  let [searchMs, turnMs] = [0, 0];
  for (;;) {
    const startedMs = performance.now();
    const { kind } = chooser.chooseSlice(hostRequest, [cloud], options, search);
    const tookMs = performance.now() - startedMs;
    searchMs += tookMs;
    turnMs = Math.max(turnMs, tookMs);
    if (kind !== "paused") return { searchMs, turnMs };
    search.beginSlice();
  }
}
