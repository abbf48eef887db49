import { type RequestGroup, requestGroup } from "../core/candidates/request.ts";
import { providerUuid, resourceClass, trait } from "../core/ledger/ids.ts";
import { LedgerView } from "../core/ledger/ledger-view.ts";
import { HostChooser } from "../core/scheduling/host-chooser.ts";
import type { HostRequest } from "../core/scheduling/host-request.ts";
import { DEFAULT_SCHEDULING_SETTINGS } from "../core/scheduling/scheduling-settings.ts";
import { buildFailures } from "../core/scheduling/weighers/build-failures.ts";
import { GpuFragmentation } from "../core/scheduling/weighers/gpu-fragmentation.ts";
import { OwnSlice } from "../core/scheduling/weighers/own-slice.ts";
import { RecentPicks } from "../core/scheduling/weighers/recent-picks.ts";
import { WeigherSet } from "../core/scheduling/weighers/weigher-set.ts";
import { generateTrace } from "../replay/generate-trace.ts";
import { CPU_CLASS, GPU_CLASS, GPU_TOTAL, gpuTrait, MEMORY_CLASS } from "../replay/map-machines.ts";
import { parseMachines, parseTasks } from "../replay/parse-trace.ts";
import { AllocationPoints } from "../replay/place-only/allocation-points.ts";
import { drawExperiment } from "../replay/place-only/draw-experiment.ts";
import { readTrace } from "../replay/read-trace.ts";
import type { Machine, Trace, TraceTask } from "../replay/trace.ts";
import { host, provider } from "../test/rigs/view-builders.ts";

// Measures how much of a trace's tasks, which never end, the schedulers' own choice of hosts allocates: with the default weighers, and with
// each of the weighers of GPUs. Large tasks are those that request all eight GPUs of a machine. A weigher that starves them refuses some of
// them while much of the cluster is free.

const INFLATE = 1.3;
const SEED = 42;
const POINTS = [50, 70, 90, 100, 130];
const LARGE_GPUS = 8;
const WEIGHERS = {
  "the default weighers (gpu_best_fit 5, ram, cpu, disk …)": {},
  "the default ones, gpu_best_fit 100": { gpu_best_fit: 100 },
  "the default ones, gpu_fragmentation 100 in place of gpu_best_fit": { gpu_best_fit: 0, gpu_fragmentation: 100 },
  "gpu_best_fit alone": { ram: 0, cpu: 0, disk: 0 },
  "gpu_fragmentation alone": { ram: 0, cpu: 0, disk: 0, gpu_best_fit: 0, gpu_fragmentation: 1 },
} as const;

export async function run(): Promise<void> {
  const trace = traceOfBench();
  for (const [name, multipliers] of Object.entries(WEIGHERS)) {
    const { allocated, largeRefusedAt, placed, tasks, seconds } = placeAll(trace, multipliers);
    const curve = POINTS.map((at) => `${at} %: ${allocated[at]?.toFixed(2)}`).join("   ");
    process.stdout.write(`  ${name}\n    GPU allocated when so much was asked for: ${curve}\n`);
    const first = largeRefusedAt[0] === undefined ? "none" : `the first at ${largeRefusedAt[0].toFixed(0)} %`;
    const early = largeRefusedAt.filter((at) => at < 90).length;
    process.stdout.write(`    large tasks refused: ${first}, ${early} before 90 %; placed ${placed} of ${tasks} tasks`);
    process.stdout.write(`   (${((seconds * 1_000) / tasks).toFixed(2)} ms a task)\n`);
  }
}

/** The trace in BERTH_BENCH_TRACE, reduced to its GPU machines, or an invented one. */
function traceOfBench(): Trace {
  const given = process.env.BERTH_BENCH_TRACE;
  if (given !== undefined) {
    const { machines, tasks } = readTrace(given, { hosts: null, tasks: null }, "optional");
    return { machines: machines.filter(({ gpus }) => gpus > 0), tasks };
  }
  const files = generateTrace({ seed: SEED, hosts: 300, tasks: 2_000 });
  const machines = parseMachines("hosts.csv", files.hosts).filter(({ gpus }) => gpus > 0);
  return { machines, tasks: parseTasks("tasks.csv", files.tasks, machines) };
}

function placeAll(trace: Trace, multipliers: Readonly<Record<string, number>>) {
  const drawn = drawExperiment(trace.tasks, trace.machines, { inflate: INFLATE, seed: SEED });
  const view = viewOf(drawn.machines);
  const fragmentation = new GpuFragmentation(() => [view]);
  const own = {
    buildFailure: buildFailures(() => new Map()),
    ownSlice: new OwnSlice("scheduler-1"),
    recentPicks: new RecentPicks(),
    gpuFragmentation: fragmentation,
  };
  const settings = {
    ...DEFAULT_SCHEDULING_SETTINGS,
    multipliers: { ...DEFAULT_SCHEDULING_SETTINGS.multipliers, ...multipliers },
  };
  const weighers = new WeigherSet(own).of(settings);
  const chooser = new HostChooser();
  const capacity = drawn.machines.reduce((sum, { gpus }) => sum + gpus * GPU_TOTAL, 0);
  const points = new AllocationPoints(capacity);
  const models = [...new Set(drawn.machines.map(({ gpuModel }) => gpuModel))];
  const largeRefusedAt: number[] = [];
  let asked = 0;
  let placed = 0;
  const startedMs = performance.now();
  for (const [index, task] of drawn.tasks.entries()) {
    const hostRequest = hostRequestOf(task, models);
    fragmentation.arrive(hostRequest.groups, view);
    const choice = chooser.choose(hostRequest, [{ name: "cell", view }], {
      ...{ seed: index, alternates: 0, spread: 1, spreadTolerance: 0, weighers },
    });
    const isPlaced = choice.kind === "chosen";
    if (choice.kind === "chosen") {
      placed += 1;
      const items = choice.selections[0]!.allocation?.items ?? [];
      view.reserve(
        `task-${index}`,
        items.map(({ provider: uuid, resourceClass: name, amount }) => ({
          ...{ provider: providerUuid(uuid), resourceClass: resourceClass(name), amount },
        })),
      );
    }
    asked += task.gpus * task.gpuMilli;
    points.add(task.gpus * task.gpuMilli, isPlaced);
    if (!isPlaced && task.gpus === LARGE_GPUS) largeRefusedAt.push((100 * asked) / capacity);
  }
  const seconds = (performance.now() - startedMs) / 1_000;
  const allocated = points.upTo(Math.round(INFLATE * 100));
  return { allocated, largeRefusedAt, placed, tasks: drawn.tasks.length, seconds };
}

/** A cell of machines: CPU and memory on the root, each GPU a child. */
function viewOf(machines: readonly Machine[]): LedgerView {
  const view = new LedgerView();
  for (const { name, cpuMilli, memoryMib, gpus, gpuModel } of machines) {
    view.applyAll(provider(name, { [CPU_CLASS]: cpuMilli, [MEMORY_CLASS]: memoryMib }));
    for (let gpu = 0; gpu < gpus; gpu += 1) {
      const options = { parent: name, traits: [gpuTrait(gpuModel)] };
      view.applyAll(provider(`${name}-gpu${gpu}`, { [GPU_CLASS]: GPU_TOTAL }, options));
    }
    view.apply(host(name, name));
  }
  return view;
}

/** CPU and memory of the root, and each GPU of a different child. */
function hostRequestOf(task: TraceTask, models: readonly string[]): HostRequest {
  const resources = new Map([
    ...(task.cpuMilli > 0 ? [[resourceClass(CPU_CLASS), task.cpuMilli] as const] : []),
    ...(task.memoryMib > 0 ? [[resourceClass(MEMORY_CLASS), task.memoryMib] as const] : []),
  ]);
  const forbidden = task.gpuModels.length === 0 ? [] : models.filter((model) => !task.gpuModels.includes(model));
  const gpus = Array.from(
    { length: task.gpus },
    (_, index): RequestGroup =>
      requestGroup({
        suffix: `${index + 1}`,
        resources: new Map([[resourceClass(GPU_CLASS), task.gpuMilli]]),
        forbiddenTraits: new Set(forbidden.map((model) => trait(gpuTrait(model)))),
      }),
  );
  const plain = resources.size > 0 ? [requestGroup({ resources })] : [];
  return { groups: [...plain, ...gpus], groupPolicy: task.gpus > 1 ? "isolate" : "none" };
}
