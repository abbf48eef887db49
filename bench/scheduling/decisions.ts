import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { providerUuid, resourceClass } from "../../core/ledger/ids.ts";
import { HostChooser } from "../../core/scheduling/host-chooser.ts";
import { seededRandom } from "../../core/scheduling/seeded-random.ts";
import type { Selection } from "../../proto/gen/berth/shared.ts";
import { measure, report } from "../measure.ts";
import { FLAVORS, flavorAt, MixedCloud, QUERIES, specOf } from "./mixed-cloud.ts";
import { allRules, type Rules } from "./rules.ts";

const SIZES = [1_000, 10_000, 100_000];
const DECISIONS = 2_000;
/** Number of claims under way at a time, before their rows arrive by replication. */
const IN_FLIGHT = 64;
const MIB = 2 ** 20;

interface Placed {
  readonly cloud: MixedCloud;
  readonly server: string;
  readonly host: number;
  readonly flavor: number;
}

/** One scheduler that places servers in cells, and sees its claims arrive in its views. As many servers are removed as are placed. */
export class DecisionRun {
  readonly cells: readonly MixedCloud[];
  readonly chooser = new HostChooser();
  readonly #rules: Rules;
  readonly #random = seededRandom(7);
  readonly #inFlight: Placed[] = [];
  readonly #standing: Placed[] = [];
  #served = 0;

  constructor(cells: readonly MixedCloud[]) {
    this.cells = cells;
    this.#rules = allRules("scheduler-1");
    this.#rules.slice.setMembers(["scheduler-1", "scheduler-2"]);
  }

  /** Makes this number of decisions. Returns how long each took, in milliseconds, in order. */
  decide(decisions: number): Float64Array {
    const tookMs = new Float64Array(decisions);
    for (let index = 0; index < decisions; index += 1) {
      const flavor = flavorAt(this.#random);
      const server = `new-${this.#served}`;
      const spec = specOf(flavor, server);
      this.#served += 1;
      const startedMs = performance.now();
      const choice = this.chooser.choose(QUERIES[flavor]!, this.cells, {
        ...{ seed: Math.floor(this.#random() * 2 ** 32), alternates: 2, spread: 5, spreadTolerance: 0.05 },
        ...{ weighers: this.#rules.weighers, filters: this.#rules.filters, spec },
      });
      tookMs[index] = performance.now() - startedMs;
      if (choice.kind === "chosen") this.#claim(server, flavor, choice.cell, choice.selections[0]!);
    }
    return tookMs.sort();
  }

  #claim(server: string, flavor: number, cell: string, { host, allocation }: Selection): void {
    const cloud = this.cells.find(({ name }) => name === cell)!;
    const items = (allocation?.items ?? []).map(({ provider, resourceClass: name, amount }) => ({
      ...{ provider: providerUuid(provider), resourceClass: resourceClass(name), amount },
    }));
    cloud.view.reserve(server, items);
    this.#inFlight.push({ cloud, server, host: Number(host.slice("host-".length)), flavor });
    if (this.#inFlight.length < IN_FLIGHT) return;
    const landed = this.#inFlight.shift()!;
    landed.cloud.move(landed.server, landed.host, landed.flavor, 1);
    landed.cloud.view.release(landed.server);
    this.#standing.push(landed);
    if (this.#standing.length <= DECISIONS) return;
    const gone = this.#standing.splice(Math.floor(this.#random() * this.#standing.length), 1)[0]!;
    gone.cloud.move(gone.server, gone.host, gone.flavor, -1);
  }
}

/** Measures the time of a decision by size of the cloud, decisions a second, and the memory needed. */
export async function reportDecisions(): Promise<void> {
  process.stdout.write(`  search, ten filters, all weighers, two alternates; ${FLAVORS.length} flavors; half full\n`);
  for (const hosts of SIZES) await reportSize(`${hosts} hosts`, () => [new MixedCloud(hosts, seededRandom(1))]);
}

/** Measures one scheduler over these cells: decisions and memory. */
export async function reportSize(size: string, newCells: () => readonly MixedCloud[]): Promise<void> {
  const before = usedBytes();
  const run = new DecisionRun(newCells());
  const at = (share: number) => (times: Float64Array) => times[Math.floor(times.length * share)]! * 1_000;
  const rounds: Float64Array[] = [];
  const p50 = await measure(() => {
    const times = run.decide(DECISIONS);
    rounds.push(times);
    return at(0.5)(times);
  });
  report(`decision over ${size}, p50`, p50, "µs");
  let round = 0;
  report(`decision over ${size}, p99`, await measure(() => at(0.99)(rounds[round++ % rounds.length]!)), "µs");
  const perSecond = await measure(() => {
    const startedMs = performance.now();
    run.decide(DECISIONS);
    return (DECISIONS * 1_000) / (performance.now() - startedMs);
  });
  report(`decisions of one scheduler over ${size}`, perSecond, "/s");
  const mib = (usedBytes() - before) / MIB;
  report(`memory of a scheduler for ${size} and their servers`, { median: mib, min: mib, max: mib }, "MiB");
  if (run.chooser.classes.size === 0) throw new Error("no class was ranked");
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** The heap in use after a garbage collection. */
function usedBytes(): number {
  collectGarbage();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
