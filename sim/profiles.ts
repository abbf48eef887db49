import type { CinderHabits } from "./sim-cinder.ts";
import type { NeutronHabits } from "./sim-neutron.ts";
import type { DriverHabits } from "./slow-driver.ts";

/** The faults of a storm, from which a swarm draws some. */
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
  "copied-tasks",
  "kill-all",
  "host-power",
  "host-away",
] as const;
/** A fault that the simulator's nemesis can inject. */
export type SimFault =
  | (typeof STORM)[number]
  | "conductor-stall"
  | "silence"
  | "dies-giving"
  | "dies-replacing"
  | "database-full"
  | "restore"
  | "restore-midway"
  | "guest-ends"
  | "guest-lost"
  | "disk-lost"
  | "journal-lost"
  | "neutron-away"
  | "no-driver"
  | "lies";

export interface Profile {
  readonly name: string;
  readonly about: string;
  /** The faults that a seed may have. In a `swarm`, each seed draws some of them. */
  readonly faults: readonly SimFault[];
  readonly swarm: boolean;
  /** Average time between two faults, in milliseconds. */
  readonly everyMs: number;
  /** Maximum difference between the clocks of two processes, in milliseconds. */
  readonly skewMs: number;
  readonly drivers: DriverHabits;
  /** How long deleted servers can be restored, in milliseconds. Users then delete softly and restore, too; their other deletes are forced. */
  readonly keepDeletedMs?: number;
  /** Whether a server that is shelved loses its host in the same operation, as with Nova's default. Otherwise users offload shelved servers. */
  readonly offloadsAtOnce?: boolean;
  /** Whether no destination of a live move may be destroyed while its source is silent (`SilentSources`). */
  readonly watchesSources?: true;
  /** The only changes that users make, besides creating and deleting servers; all changes by default. */
  readonly changes?: readonly string[];
  /** How long after the beginning of a change users regret it at most, in milliseconds; 2.5 s by default. */
  readonly regretMsMax?: number;
  /** With a Cinder, users create servers with new volumes, which are to end with their servers. */
  readonly cinder?: CinderHabits;
  /** With a Neutron, users create servers with ports. */
  readonly neutron?: NeutronHabits;
}

const QUICK: DriverHabits = { callMsMax: 500, longShare: 0, longMsMax: 0, lostShare: 0, deafShare: 0 };
/** Some calls take longer than the agent waits for them. */
const SLOW: DriverHabits = { callMsMax: 3_000, longShare: 0.03, longMsMax: 90_000, lostShare: 0, deafShare: 0.2 };
const SLOW_AND_LOSSY: DriverHabits = {
  callMsMax: 2_000,
  longShare: 0.03,
  longMsMax: 20_000,
  lostShare: 0.05,
  deafShare: 0.2,
};

export const PROFILES: readonly Profile[] = [
  {
    name: "calm",
    about: "no faults but hosts that fail builds",
    faults: [],
    swarm: false,
    everyMs: 60_000,
    skewMs: 0,
    drivers: QUICK,
  },
  {
    name: "swarm",
    about: "each seed draws some of all faults",
    faults: STORM,
    swarm: true,
    everyMs: 2_000,
    skewMs: 2_000,
    drivers: SLOW_AND_LOSSY,
  },
  {
    name: "crashes",
    about: "processes die and stand still",
    offloadsAtOnce: true,
    faults: ["kill", "pause", "power-loss", "host-power", "kill-all"],
    swarm: false,
    everyMs: 1_000,
    skewMs: 0,
    drivers: SLOW_AND_LOSSY,
  },
  {
    name: "partitions",
    about: "ways are cut, one way and both",
    offloadsAtOnce: true,
    faults: ["cut-cell", "cut-agent", "host-away", "database-stall", "broker-stall"],
    swarm: false,
    everyMs: 2_000,
    skewMs: 0,
    drivers: QUICK,
  },
  {
    name: "slow",
    about: "slow disks, slow links, late and doubled messages",
    offloadsAtOnce: true,
    faults: ["slow-place", "spikes", "twice", "loss"],
    swarm: false,
    everyMs: 2_000,
    skewMs: 5_000,
    drivers: SLOW,
  },
  {
    name: "rivals",
    about: "messages arrive twice and places are slow, so that two processes work on the same request",
    faults: ["twice", "slow-place"],
    swarm: false,
    everyMs: 1_000,
    skewMs: 5_000,
    drivers: SLOW,
  },
  {
    name: "full-disks",
    about:
      "the disks of cells' databases fill for some time, while messages arrive twice, places are slow and processes die",
    faults: ["database-full", "database-full", "database-full", "twice", "slow-place", "kill"],
    swarm: false,
    everyMs: 1_000,
    skewMs: 2_000,
    drivers: QUICK,
  },
  {
    name: "stalls",
    about: "conductors stand still or are off their database for longer than their lease",
    faults: ["conductor-stall", "slow-place"],
    swarm: false,
    everyMs: 1_000,
    skewMs: 2_000,
    drivers: QUICK,
  },
  {
    name: "stalled-moves",
    about: "conductors stand still as in `stalls`, and users do nothing but live migrate, and call it off",
    faults: ["conductor-stall", "slow-place"],
    swarm: false,
    everyMs: 1_000,
    skewMs: 2_000,
    drivers: QUICK,
    changes: ["live"],
  },
  {
    name: "dead-or-cut",
    about: "hosts lose their power, or only their network, for long enough to be taken for dead and evacuated",
    faults: ["host-power", "host-away", "host-away"],
    swarm: false,
    everyMs: 2_000,
    skewMs: 0,
    drivers: QUICK,
  },
  {
    name: "cut-off",
    about: "hosts lose only their network, for long enough to be taken for dead and evacuated",
    faults: ["host-away"],
    swarm: false,
    everyMs: 1_000,
    skewMs: 0,
    drivers: QUICK,
  },
  {
    name: "silence",
    about:
      "hosts fall silent for ten seconds and more right after they have started, stopped, handed over or destroyed a guest",
    faults: ["silence", "silence", "silence", "kill"],
    swarm: false,
    everyMs: 1_500,
    skewMs: 0,
    drivers: QUICK,
  },
  {
    name: "silent-moves",
    about: "hosts fall silent as in `silence`, and users do nothing but live migrate and rebuild",
    faults: ["silence", "silence", "silence", "kill"],
    swarm: false,
    everyMs: 1_500,
    skewMs: 0,
    drivers: QUICK,
    changes: ["live", "rebuild"],
    regretMsMax: 10_000,
    watchesSources: true,
  },
  {
    name: "refused-starts",
    about:
      "hosts lose their power right after they have handed a live guest over, are forced down, and are back later, while one in three guests cannot start for some time",
    faults: ["dies-giving", "dies-giving", "dies-giving", "kill"],
    swarm: false,
    everyMs: 2_500,
    skewMs: 0,
    drivers: { ...QUICK, refusedStartShare: 0.35 },
    changes: ["live"],
    regretMsMax: 10_000,
    watchesSources: true,
  },
  {
    name: "lost-guests",
    about:
      "hosts lose guests and disks, and operators rebuild the servers, while processes die and messages come twice",
    faults: [
      "guest-lost",
      "guest-lost",
      "guest-lost",
      "disk-lost",
      "disk-lost",
      "kill",
      "cut-agent",
      "silence",
      "twice",
    ],
    swarm: false,
    everyMs: 1_000,
    skewMs: 0,
    drivers: SLOW_AND_LOSSY,
    changes: ["rebuild", "os-stop", "os-start", "hard"],
  },
  {
    name: "journal-lost",
    about:
      "agents lose their journals while their guests go on, and processes die, hosts fall silent or lose their power, and messages come twice",
    faults: [
      ...["journal-lost", "journal-lost", "journal-lost", "kill", "cut-agent"],
      ...["silence", "host-power", "dies-giving", "twice"],
    ] as const,
    swarm: false,
    everyMs: 1_000,
    skewMs: 0,
    drivers: { ...SLOW_AND_LOSSY, unlistedShare: 0.15 },
  },
  {
    name: "self-stops",
    about: "guests shut themselves down or crash, while processes die and messages are late, doubled or lost",
    faults: ["guest-ends", "guest-ends", "guest-ends", "kill", "cut-agent", "twice", "spikes"],
    swarm: false,
    everyMs: 1_000,
    skewMs: 0,
    drivers: SLOW_AND_LOSSY,
  },
  {
    name: "soft-deletes",
    about: "servers are deleted softly, restored and reclaimed, while processes and hosts die and ways are cut",
    faults: ["kill", "pause", "cut-cell", "cut-agent", "host-power", "twice", "spikes"],
    swarm: false,
    everyMs: 1_000,
    skewMs: 2_000,
    drivers: SLOW_AND_LOSSY,
    keepDeletedMs: 30_000,
  },
  {
    name: "lies",
    about: "agents lie about their guests and orders, and about the hosts and guests of others",
    faults: ["lies", "lies", "lies", "kill", "cut-agent"],
    swarm: false,
    everyMs: 1_500,
    skewMs: 0,
    drivers: QUICK,
  },
  {
    name: "restores",
    about: "cells' databases are restored to earlier moments at which no task was open",
    faults: ["restore", "restore", "kill"],
    swarm: false,
    everyMs: 2_000,
    skewMs: 0,
    drivers: QUICK,
  },
  {
    name: "restores-midway",
    about: "cells' databases are restored to any earlier moments, with the tasks that were open then",
    faults: ["restore-midway", "restore-midway", "kill"],
    swarm: false,
    everyMs: 2_000,
    skewMs: 0,
    drivers: QUICK,
  },
  {
    name: "volumes",
    about:
      "servers have volumes in a Cinder that is silent, slow, or loses its answers, while processes and hosts die and ways are cut",
    faults: ["kill", "kill", "pause", "cut-cell", "cut-agent", "host-power", "spikes"],
    swarm: false,
    everyMs: 1_500,
    skewMs: 2_000,
    drivers: SLOW_AND_LOSSY,
    cinder: { silentShare: 0.05, lostShare: 0.05, slowShare: 0.05, fillMsMax: 5_000, errorShare: 0.05 },
  },
  {
    name: "volume-migrations",
    about:
      "Cinder migrates the volumes of servers, for which it asks for their replacement, and is silent, slow, or loses its answers, while processes and hosts die and ways are cut",
    faults: [
      "kill",
      "kill",
      "pause",
      "cut-cell",
      "cut-agent",
      "host-power",
      "spikes",
      "dies-replacing",
      "dies-replacing",
    ],
    swarm: false,
    everyMs: 2_000,
    skewMs: 2_000,
    drivers: { callMsMax: 800, longShare: 0.03, longMsMax: 20_000, lostShare: 0.05, deafShare: 0.2 },
    changes: [
      "resize",
      "migrate",
      "live",
      "hard",
      "os-stop",
      "os-start",
      "shelve",
      "unshelve",
      "pause",
      "unpause",
    ].concat([...["confirmResize", "revertResize"]]),
    cinder: {
      ...{ silentShare: 0.01, lostShare: 0.02, slowShare: 0.02, fillMsMax: 1_000, errorShare: 0.02 },
      migrations: { makeMsMax: 800, failedShare: 0.03, lateShare: 0.1, retypeShare: 0.3, bootShare: 0.3 },
    },
  },
  {
    name: "volumes-restored",
    about:
      "cells' databases are restored to earlier moments at which no task was open, while servers with volumes in a slow Cinder that loses its answers are moved",
    faults: ["restore", "restore", "kill", "host-away"],
    swarm: false,
    everyMs: 2_000,
    skewMs: 0,
    drivers: QUICK,
    cinder: { silentShare: 0.03, lostShare: 0.03, slowShare: 0.03, fillMsMax: 3_000, errorShare: 0.02 },
  },
  {
    name: "reimages",
    about:
      "servers boot from volumes, which a slow, failing or silent Cinder fills when they are rebuilt, while processes and hosts die and ways are cut",
    faults: ["kill", "kill", "pause", "cut-cell", "cut-agent", "host-power", "spikes"],
    swarm: false,
    everyMs: 1_500,
    skewMs: 2_000,
    drivers: SLOW_AND_LOSSY,
    changes: ["hard", "os-stop", "os-start", "live", "migrate", "confirmResize", "revertResize"],
    cinder: {
      ...{ silentShare: 0.03, lostShare: 0.03, slowShare: 0.03, fillMsMax: 3_000, errorShare: 0.02 },
      fills: {
        ...{ fillMsMax: 9_000, refusedShare: 0.1, failedShare: 0.2, stuckShare: 0.1, refusedLateShare: 0.1 },
        ...{ eventLostShare: 0.3, eventTwiceShare: 0.2 },
      },
    },
  },
  {
    name: "ports",
    about:
      "servers have ports in a Neutron that is slow, late, away, loses its answers, or cannot connect them on some hosts, while processes and hosts die and ways are cut",
    faults: ["kill", "kill", "pause", "cut-cell", "cut-agent", "host-power", "spikes", "neutron-away", "no-driver"],
    swarm: false,
    everyMs: 1_500,
    skewMs: 2_000,
    drivers: SLOW_AND_LOSSY,
    neutron: {
      ...{ failedShare: 0.02, lostShare: 0.03, slowShare: 0.03, lateShare: 0.01, changedShare: 0.05 },
      ...{ plugMsMax: 1_500, unpluggedShare: 0.02, failedAheadShare: 0.05, eventLostShare: 0.2, eventTwiceShare: 0.2 },
    },
  },
  {
    name: "storm",
    about: "everything at once",
    faults: STORM,
    swarm: false,
    everyMs: 500,
    skewMs: 2_000,
    drivers: SLOW_AND_LOSSY,
  },
];
