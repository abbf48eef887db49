import type { Machine, TraceTask } from "./trace.ts";

const MACHINE_KINDS: readonly Omit<Machine, "name">[] = [
  { cpuMilli: 96_000, memoryMib: 393_216, gpus: 8, gpuModel: "A100" },
  { cpuMilli: 64_000, memoryMib: 262_144, gpus: 4, gpuModel: "A100" },
  { cpuMilli: 32_000, memoryMib: 131_072, gpus: 2, gpuModel: "T4" },
  { cpuMilli: 64_000, memoryMib: 262_144, gpus: 0, gpuModel: "" },
];
const GPU_SHARES = [100, 250, 300, 460, 500, 750];

/** The files of an invented trace in the format of the published ones, by their names. The same seed gives the same trace. */
export function generateTrace(options: { readonly seed: number; readonly hosts: number; readonly tasks: number }): {
  readonly hosts: string;
  readonly tasks: string;
} {
  const random = randomOf(options.seed);
  const machines = Array.from({ length: options.hosts }, (_, index) => ({
    name: `machine-${String(index).padStart(4, "0")}`,
    ...MACHINE_KINDS[index % MACHINE_KINDS.length]!,
  }));
  const tasks = Array.from({ length: options.tasks }, (_, index) => generateTask(index, random));
  return { hosts: machinesFile(machines), tasks: tasksFile(tasks) };
}

/**
 * Most tasks take a share of a GPU or a whole one, a few take many, and some take none. They arrive at equal intervals and stay for about a
 * tenth of the trace.
 */
function generateTask(index: number, random: () => number): TraceTask {
  const gpus = pick(random, [0, 1, 1, 1, 1, 1, 1, 1, 2, random() < 0.2 ? 8 : 4]);
  const gpuMilli = gpus === 0 ? 0 : gpus === 1 && random() < 0.6 ? pick(random, GPU_SHARES) : 1000;
  const createdAt = index * 10;
  return {
    name: `task-${String(index).padStart(5, "0")}`,
    cpuMilli: pick(random, [500, 1_000, 2_000, 4_000, 6_000, 8_000]) * Math.max(1, Math.min(gpus, 4)),
    memoryMib: pick(random, [1_024, 2_048, 8_192, 16_384, 24_576]),
    gpus,
    gpuMilli,
    gpuModels: gpus === 1 && random() < 0.15 ? ["T4"] : [],
    createdAt,
    deletedAt: createdAt + 300 + Math.floor(random() * 1_000),
  };
}

function machinesFile(machines: readonly Machine[]): string {
  const lines = machines.map(({ name, cpuMilli, memoryMib, gpus, gpuModel }) =>
    [name, cpuMilli, memoryMib, gpus, gpuModel].join(","),
  );
  return `${["sn,cpu_milli,memory_mib,gpu,model", ...lines].join("\n")}\n`;
}

function tasksFile(tasks: readonly TraceTask[]): string {
  const header =
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time";
  const lines = tasks.map((task) =>
    [
      ...[task.name, task.cpuMilli, task.memoryMib, task.gpus, task.gpuMilli, task.gpuModels.join("|")],
      ...["LS", "Running", task.createdAt, task.deletedAt, task.createdAt],
    ].join(","),
  );
  return `${[header, ...lines].join("\n")}\n`;
}

function pick<Item>(random: () => number, items: readonly Item[]): Item {
  return items[Math.floor(random() * items.length)]!;
}

/** Numbers in [0, 1) that are determined by the seed (mulberry32, by Tommy Ettinger, public domain). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
