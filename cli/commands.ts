import { nearestWords } from "../runtime/nearest-words.ts";

/** The most names that an unknown command is answered with. */
const NEAREST_MAX = 3;

/** A subcommand of `berth`. Its module is loaded when it runs: `berth --help` must not load four services. */
export interface Command {
  /** The words after `berth`. */
  readonly name: string;
  readonly summary: string;
  /** Runs the command with the arguments after its name and resolves with the exit code. */
  run(argv: readonly string[]): Promise<number>;
}

export const commands: readonly Command[] = [
  {
    name: "dev",
    summary: "run a whole cloud in this process, on an embedded Postgres",
    run: async (argv) => (await import("./dev.ts")).runDevCommand(argv),
  },
  {
    name: "demo",
    summary: "generate a small data centre and replay a day of it",
    run: async (argv) => (await import("./demo.ts")).runDemoCommand(argv),
  },
  {
    name: "replay",
    summary: "replay the trace of a data centre through the public API, then audit",
    // `place-only` is loaded apart, because it needs none of the services.
    run: async (argv) =>
      argv.includes("--place-only")
        ? (await import("./place-only.ts")).runPlaceOnlyCommand(argv.filter((word) => word !== "--place-only"))
        : (await import("./replay.ts")).runReplayCommand(argv),
  },
  {
    name: "audit",
    summary: "check the six laws on a live system",
    run: async (argv) => (await import("./audit.ts")).runAuditCommand(argv),
  },
  {
    name: "sim",
    summary: "run clouds in simulated worlds, with faults, and audit them at every step",
    run: async (argv) => (await import("./sim.ts")).runSimCommand(argv),
  },
  {
    name: "chaos-report",
    summary: "judge the history of a chaos run, and write its report",
    run: async (argv) => (await import("./chaos-report.ts")).runChaosReportCommand(argv),
  },
  {
    name: "chaos",
    summary: "send requests while breaking real processes, then audit",
    run: async (argv) => (await import("./chaos.ts")).runChaosCommand(argv),
  },
  {
    name: "api",
    summary: "serve the Compute API (with --only placement: only the Placement API)",
    run: async (argv) => (await import("../services/api/main.ts")).runApi(argv),
  },
  {
    name: "scheduler",
    summary: "place accepted requests: choose a host, claim it, hand the build to the cell",
    run: async (argv) => (await import("../services/scheduler/main.ts")).runScheduler(argv),
  },
  {
    name: "conductor",
    summary: "carry out a cell's builds and deletes, on alternates if hosts fail",
    run: async (argv) => (await import("../services/conductor/main.ts")).runConductor(argv),
  },
  {
    name: "compute-agent",
    summary: "build servers on hosts and report the hosts' resources",
    run: async (argv) => (await import("../services/compute-agent/main.ts")).runComputeAgent(argv),
  },
  {
    name: "console-proxy",
    summary: "connect clients of remote consoles with the hosts of their servers",
    run: async (argv) => (await import("../services/console-proxy/main.ts")).runConsoleProxy(argv),
  },
  {
    name: "db migrate",
    summary: "bring the API database and every cell's database up to this version",
    run: async (argv) => (await import("./db-migrate.ts")).runDbMigrateCommand(argv),
  },
  {
    name: "db archive",
    summary: "remove deleted servers and ended work from the databases, with or without a copy in a file",
    run: async (argv) => (await import("./db-archive.ts")).runDbArchiveCommand(argv),
  },
  {
    name: "cell add",
    summary: "add a cell, or change its addresses; prepares its database",
    run: async (argv) => (await import("./cell-add.ts")).runCellAddCommand(argv),
  },
  {
    name: "certs",
    summary: "create and renew certificates for servers, conductors and agents",
    run: async (argv) => (await import("./certs.ts")).runCertsCommand(argv),
  },
  {
    name: "cell list",
    summary: "list the cells",
    run: async (argv) => (await import("./cell-list.ts")).runCellListCommand(argv),
  },
  {
    name: "cell remove",
    summary: "remove the record of a cell that is disabled and empty",
    run: async (argv) => (await import("./cell-remove.ts")).runCellRemoveCommand(argv),
  },
  {
    name: "cell restored",
    summary: "record that a cell's database was restored: unknown guests are kept, not destroyed",
    run: async (argv) => (await import("./cell-quarantine.ts")).runRestored(argv),
  },
  {
    name: "cell quarantine",
    summary: "list or destroy guests that a cell's database has forgotten",
    run: async (argv) => (await import("./cell-quarantine.ts")).runCellQuarantineCommand(argv),
  },
  {
    name: "host list",
    summary: "list the hosts of all cells",
    run: async (argv) => (await import("./operators/host-list.ts")).runHostListCommand(argv),
  },
  {
    name: "host show",
    summary: "show a host in detail; reset its build failures",
    run: async (argv) => (await import("./operators/host-show.ts")).runHostShowCommand(argv),
  },
  {
    name: "host inspect",
    summary: "show the hardware of a Linux host, and the resource providers that it would report",
    run: async (argv) => (await import("./operators/host-inspect.ts")).runHostInspectCommand(argv),
  },
  {
    name: "host enable",
    summary: "allow new servers on a host",
    run: async (argv) => (await import("./operators/host-enable.ts")).runHostEnableCommand(argv),
  },
  {
    name: "host disable",
    summary: "keep new servers off a host",
    run: async (argv) => (await import("./operators/host-enable.ts")).runDisable(argv),
  },
  {
    name: "host drain",
    summary: "move all servers of a host to other hosts",
    run: async (argv) => (await import("./operators/host-drain.ts")).runHostDrainCommand(argv),
  },
  {
    name: "volume settle",
    summary: "settle which of two volumes a server's guest uses",
    run: async (argv) => (await import("./operators/volume-settle.ts")).runVolumeSettle(argv),
  },
  {
    name: "image prune",
    summary: "remove the files of deleted images from a host's directory of images",
    run: async (argv) => (await import("./operators/image-prune.ts")).runImagePruneCommand(argv),
  },
  {
    name: "ratios show",
    summary: "show allocation ratios, of all or of one host with their sources",
    run: async (argv) => (await import("./operators/ratios-show.ts")).runRatiosShowCommand(argv),
  },
  {
    name: "ratios set",
    summary: "set allocation ratios of an aggregate's hosts or of one host",
    run: async (argv) => (await import("./operators/ratios-set.ts")).runRatiosSetCommand(argv),
  },
  {
    name: "ratios unset",
    summary: "remove allocation ratios",
    run: async (argv) => (await import("./operators/ratios-set.ts")).runRatiosUnsetCommand(argv),
  },
  {
    name: "settings show",
    summary: "show the settings that schedulers read while they run",
    run: async (argv) => (await import("./operators/settings-show.ts")).runSettingsShowCommand(argv),
  },
  {
    name: "settings set",
    summary: "change settings of schedulers, at once and without a restart",
    run: async (argv) => (await import("./operators/settings-set.ts")).runSettingsSetCommand(argv),
  },
  {
    name: "settings unset",
    summary: "reset settings of schedulers to their defaults",
    run: async (argv) => (await import("./operators/settings-set.ts")).runSettingsUnsetCommand(argv),
  },
  {
    name: "console",
    summary: "open a server's serial console in this terminal",
    run: async (argv) => (await import("./operators/console.ts")).runConsoleCommand(argv),
  },
  {
    name: "console-log",
    summary: "print what a server has written to its console",
    run: async (argv) => (await import("./operators/console-log.ts")).runConsoleLogCommand(argv),
  },
  {
    name: "explain",
    summary: "explain why a server is on its host or on none, or where a new one would go",
    run: async (argv) => (await import("./operators/explain.ts")).runExplainCommand(argv),
  },
  {
    name: "dashboard",
    summary: "serve the dashboard of an api on this machine, with your token",
    run: async (argv) => (await import("./operators/dashboard.ts")).runDashboardCommand(argv),
  },
  {
    name: "top",
    summary: "show the cloud while it works, in a terminal",
    run: async (argv) => (await import("./operators/top.ts")).runTopCommand(argv),
  },
  {
    name: "sync-aggregates",
    summary: "update the cells' placement aggregates and ratios from the API tier's",
    run: async (argv) => (await import("./operators/sync-aggregates.ts")).runSyncAggregatesCommand(argv),
  },
  {
    name: "import-placement",
    summary: "copy an OpenStack Placement database into a cell's ledger, and compare both",
    run: async (argv) => (await import("./import-placement.ts")).runImportPlacementCommand(argv),
  },
];

export type FoundCommand =
  | { readonly kind: "command"; readonly command: Command; readonly argv: readonly string[] }
  | { readonly kind: "help" }
  | { readonly kind: "version" }
  /** The first word of several commands, alone or with a request for help. */
  | { readonly kind: "group"; readonly group: string }
  /** An unknown word; `group` is set when the word before it is the name of a group. `nearest` are the names that may have been meant. */
  | {
      readonly kind: "unknown";
      readonly word: string;
      readonly group: string | null;
      readonly nearest: readonly string[];
    };

const HELP: readonly string[] = ["help", "--help", "-h"];

/** The command that the arguments begin with. */
export function findCommand(argv: readonly string[], among: readonly Command[] = commands): FoundCommand {
  const [first, next] = argv;
  if (first === "--version") return { kind: "version" };
  // The help of a command is asked for with its name before or after the request.
  if (first === "help" && next !== undefined && !HELP.includes(next))
    return findCommand([...argv.slice(1), "--help"], among);
  if (first === undefined || HELP.includes(first)) return { kind: "help" };
  for (const command of among) {
    const words = command.name.split(" ");
    if (words.every((word, index) => argv[index] === word))
      return { kind: "command", command, argv: argv.slice(words.length) };
  }
  const names = among.map(({ name }) => name);
  const isGroup = names.some((name) => name.startsWith(`${first} `));
  if (isGroup && (next === undefined || HELP.includes(next))) return { kind: "group", group: first };
  const both = `${first} ${next ?? ""}`.trim();
  if (!isGroup) {
    // The first word alone is compared, too, because the second one may be an argument.
    const nearest = [...nearestWords(both, names), ...nearestWords(first, [...names, ...groupsOf(names)])];
    return { kind: "unknown", word: first, group: null, nearest: [...new Set(nearest)].slice(0, NEAREST_MAX) };
  }
  const ofGroup = names.filter((name) => name.startsWith(`${first} `));
  const nearest = nearestWords(both, ofGroup);
  return { kind: "unknown", word: both, group: first, nearest: nearest.length > 0 ? nearest : ofGroup };
}

/** The first words of commands of two words. */
const groupsOf = (names: readonly string[]): readonly string[] =>
  names.filter((name) => name.includes(" ")).map((name) => name.split(" ")[0] as string);
