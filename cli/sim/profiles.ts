/** Faults of a storm, and those that a swarm draws from. */
const STORM = [
  "kill",
  "pause",
  "power-loss",
  "cut-cell",
  "cut-agent",
  "database-stall",
  "broker-stall",
  "redis-flush",
  "slow-place",
  "loss",
  "twice",
  "spikes",
  "kill-all",
  "host-power",
] as const;
/** A fault that a nemesis knows. */
export type Fault = (typeof STORM)[number] | "conductor-stall";

export interface Profile {
  readonly name: string;
  readonly about: string;
  /** Which of the faults a seed may have; `swarm`: each seed draws some of them. */
  readonly faults: readonly Fault[];
  readonly swarm: boolean;
  /** Between two faults, on average. */
  readonly everyMs: number;
  /** Most that the clocks of two processes are apart. */
  readonly skewMs: number;
}

export const PROFILES: readonly Profile[] = [
  { name: "calm", about: "no faults but hosts that fail builds", faults: [], swarm: false, everyMs: 60_000, skewMs: 0 },
  {
    name: "swarm",
    about: "each seed draws some of all faults",
    faults: STORM,
    swarm: true,
    everyMs: 2_000,
    skewMs: 2_000,
  },
  {
    name: "crashes",
    about: "processes die and stand still",
    faults: ["kill", "pause", "power-loss", "host-power", "kill-all"],
    swarm: false,
    everyMs: 1_000,
    skewMs: 0,
  },
  {
    name: "partitions",
    about: "ways are cut, one way and both",
    faults: ["cut-cell", "cut-agent", "database-stall", "broker-stall"],
    swarm: false,
    everyMs: 2_000,
    skewMs: 0,
  },
  {
    name: "slow",
    about: "slow disks, slow links, late and doubled messages",
    faults: ["slow-place", "spikes", "twice", "loss"],
    swarm: false,
    everyMs: 2_000,
    skewMs: 5_000,
  },
  {
    name: "stalls",
    about: "conductors stand still or are off their database for longer than their lease",
    faults: ["conductor-stall", "slow-place"],
    swarm: false,
    everyMs: 1_000,
    skewMs: 2_000,
  },
  { name: "storm", about: "everything at once", faults: STORM, swarm: false, everyMs: 500, skewMs: 2_000 },
];
