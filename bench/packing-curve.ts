import { placeAll } from "../cli/place-only.ts";
import { PACKING_POLICIES } from "../core/scheduling/packing/packing-policies.ts";

// `node bench/packing-curve.ts TRACE_DIR LIST[,LIST…] FIRST..LAST` compares `fragmentation` with the best of all other policies at each of
// the 131 points from 0 to 130 % arrived, separately for each seed. A policy that refuses tasks early loses there, even if it ends well.
// Takes some seconds for each list and seed.

const INFLATE = 1.3;
/** A figure counts as equal if it is at most this much below the best other policy: three of 6,212 GPUs, in percent of all GPUs. */
const TOLERANCE = 0.05;

const [directory = ".", lists = "default", range = "42..44"] = process.argv.slice(2);
const [first, last] = range.split("..").map(Number) as [number, number];
const others = PACKING_POLICIES.filter((policy) => policy !== "fragmentation");
process.stdout.write(
  `${"list, seed".padEnd(18)}${"points below".padEnd(14)}${"worst, at".padEnd(14)}${"at 130 %".padEnd(10)}${"fgd".padEnd(8)}tasks more than fgd\n`,
);
for (const tasks of lists.split(",")) {
  for (let seed = first; seed <= last; seed += 1) {
    const settings = { policy: PACKING_POLICIES, tasks, inflate: INFLATE, seed, seeds: null, json: null };
    const reports = new Map(placeAll(directory, settings).map((report) => [report.policy, report]));
    const own = reports.get("fragmentation")!;
    const fgd = reports.get("fgd")!;
    const behind = own.allocated.map((value, at) => {
      const best = Math.max(...others.map((policy) => reports.get(policy)!.allocated[at] ?? 0));
      return (value ?? 0) - best;
    });
    const worst = Math.min(...behind);
    const below = behind.filter((one) => one < -TOLERANCE - 1e-9).length;
    const cells = [
      `${tasks}, ${seed}`.padEnd(18),
      `${below}`.padEnd(14),
      `${worst.toFixed(2)}, ${behind.indexOf(worst)} %`.padEnd(14),
      `${own.allocated.at(-1)}`.padEnd(10),
      `${fgd.allocated.at(-1)}`.padEnd(8),
      `${own.runs[0]!.placed - fgd.runs[0]!.placed}`,
    ];
    process.stdout.write(`${cells.join("")}\n`);
  }
}
