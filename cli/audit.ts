import { CINDER, CinderClient } from "../adapters/openstack/cinder-client.ts";
import { loginOptions } from "../adapters/openstack/login-options.ts";
import { neighbourOptions } from "../adapters/openstack/neighbour-options.ts";
import { openNeighbours } from "../adapters/openstack/open-neighbours.ts";
import { seesAllProjects } from "../adapters/openstack/sees-all-projects.ts";
import { readCellRecords } from "../adapters/postgres/api/cell-records.ts";
import { RedisSoftState } from "../adapters/redis/redis-soft-state.ts";
import { isClean } from "../audit/audit-report.ts";
import { type AuditOptions, auditTwice } from "../audit/audit-twice.ts";
import { conductorSettingNames } from "../audit/conductor-setting-names.ts";
import { healingText, healViolations } from "../audit/heal-violations.ts";
import { changeText, watchJson, watchText } from "../audit/print-change.ts";
import { auditText } from "../audit/print-report.ts";
import { publishLaws } from "../audit/publish-laws.ts";
import type { AuditedStorage } from "../audit/read-cinder.ts";
import { readGuests } from "../audit/read-guests.ts";
import { type AuditChange, watchCloud } from "../audit/watch-cloud.ts";
import { apiDatabaseSettings, openApiDatabase } from "../cloud/api-database.ts";
import { systemClock } from "../runtime/clock.ts";
import { boolean, duration, hostPort, listOf, oneOf, text, url } from "../runtime/setting-kinds.ts";
import { optional, SettingsError, setting, type ValuesOf } from "../runtime/settings.ts";
import { requireMigrated } from "./require-migrated.ts";
import { runCommand } from "./run-command.ts";

export const auditDeclaration = {
  command: "berth audit",
  about: "Checks the six laws on a live cloud, from its databases and agents. Exit code 1 if one is broken.",
  settings: {
    ...apiDatabaseSettings,
    heal: setting(boolean, {
      about:
        "repair the violations that can be repaired safely; prints the values before and after, and the violations that are left",
      default: "false",
    }),
    dryRun: setting(boolean, { about: "with --heal: only say what would be done", default: "false" }),
    json: setting(boolean, { about: "print one JSON object; with --watch, one for each change", default: "false" }),
    watch: setting(boolean, {
      about: "audit again and again until interrupted, follow the history of every ledger, and print changes only",
      default: "false",
    }),
    every: setting(duration({ minMs: 100, maxMs: 3_600_000 }), { about: "with --watch: how often", default: "5s" }),
    watchFor: optional(duration({ minMs: 1, maxMs: 365 * 24 * 3_600_000 }), {
      about: "with --watch: end by itself after so long",
    }),
    publish: setting(boolean, {
      about: "with --watch: leave the state of the laws in Redis, where apis read it for dashboards",
      default: "false",
    }),
    redisUrl: optional(url("redis", "rediss"), { about: "with --publish: the API tier's Redis" }),
    pause: setting(duration({ minMs: 0, maxMs: 600_000 }), {
      about: "time between the two readings; only violations that both show are reported",
      default: "3s",
    }),
    patience: setting(duration({ minMs: 0, maxMs: 3_600_000 }), {
      about: "how long an open request or task may be untouched before this is a violation",
      default: "30s",
    }),
    agents: optional(listOf(hostPort), {
      about: "addresses of agents' probes (their --metrics-listen), which are asked for their guests",
    }),
    journals: optional(listOf(text()), {
      about: "directories of agents' journals, or journals, which are read for their guests",
    }),
    volumes: setting(oneOf("none", "simple", "cinder"), {
      about: "the volumes of the api; with cinder, who has which volume is compared with Cinder's attachments",
      default: "none",
    }),
    sharedCinder: setting(boolean, {
      about: "with --volumes cinder: other clouds use this Cinder, too, and attachments of unknown servers are theirs",
      default: "false",
    }),
    cinderUrl: optional(url("http", "https"), {
      about: "URL of Cinder for --volumes cinder; by default the one in Keystone's catalogue",
    }),
    ...loginOptions,
    ...neighbourOptions,
  },
} as const;

type Settings = ValuesOf<typeof auditDeclaration.settings>;

/** `berth audit`: reads every cell's database and the API database, and prints what is broken, where, and how that is known. */
export function runAuditCommand(argv: readonly string[]): Promise<number> {
  return runCommand(auditDeclaration, argv, async (settings) => {
    if (settings.dryRun && !settings.heal)
      throw new SettingsError("--dry-run shows what --heal would do, so give --heal, too");
    if (settings.publish && !settings.watch)
      throw new SettingsError("--publish publishes the results of a watch, so give --watch, too");
    const cinder = openCinder(settings);
    const api = await openApiDatabase(settings, { beside: true });
    try {
      await requireMigrated(api.url);
      const options = { ...(await optionsOf(settings, api.url)), blockStorage: cinder?.audited };
      if (settings.watch) return await watch(settings, options);
      const report = await auditTwice(options);
      const healings = settings.heal ? await healViolations(options, report.violations, settings.dryRun) : [];
      const printed = [auditText(report), ...healings.map((healing) => healingText(healing, settings.dryRun))];
      const json = settings.heal ? { ...report, dryRun: settings.dryRun, healings } : report;
      process.stdout.write(`${settings.json ? JSON.stringify(json, null, 2) : printed.join("\n")}\n`);
      return isClean(report) ? 0 : 1;
    } finally {
      await cinder?.close();
      await api.close();
    }
  });
}

/** Opens Cinder, or returns null if the cloud has no volumes there. Throws `SettingsError` if the login is incomplete. Sends no request yet. */
function openCinder(settings: Settings): { readonly audited: AuditedStorage; close(): Promise<void> } | null {
  if (settings.volumes !== "cinder") return null;
  const neighbours = openNeighbours(settings);
  const client = neighbours.client({ ...CINDER, url: settings.cinderUrl });
  const audited = {
    ...{ storage: new CinderClient(client), isShared: settings.sharedCinder },
    seesAllProjects: () => seesAllProjects(client),
  };
  return { audited, close: () => neighbours.close() };
}

/** Watches until SIGINT, SIGTERM or the end of its time. */
async function watch(settings: Settings, options: AuditOptions): Promise<number> {
  const ending = new AbortController();
  const end = (): void => ending.abort();
  const timer = settings.watchFor === null ? null : setTimeout(end, settings.watchFor);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, end);
  const softState = openPublished(settings);
  const published = softState === null ? null : publishLaws(softState, systemClock);
  const onChange = (change: AuditChange): void => {
    published?.onChange(change);
    process.stdout.write(`${settings.json ? JSON.stringify(change) : changeText(change)}\n`);
  };
  try {
    const heal = settings.heal ? { isDryRun: settings.dryRun } : undefined;
    const watching = { everyMs: settings.every, heal, signal: ending.signal, onChange };
    const watched = await watchCloud({
      ...options,
      ...watching,
      onReading: (reading) => published?.onReading(reading),
    });
    const printed = `${watchText(watched)}\n${auditText(watched.report)}`;
    process.stdout.write(`${settings.json ? JSON.stringify(watchJson(watched)) : printed}\n`);
    return watched.report.violations.length === 0 ? 0 : 1;
  } finally {
    if (timer !== null) clearTimeout(timer);
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, end);
    await softState?.close();
  }
}

/** Opens the store for `--publish`, or returns null without it. An outage of Redis is reported and does not end the audit. */
function openPublished({ publish, redisUrl }: Settings): RedisSoftState | null {
  if (!publish) return null;
  if (redisUrl === null)
    throw new SettingsError(
      "BERTH_REDIS_URL (--redis-url) is missing: --publish writes the state of the laws to Redis",
    );
  const tell = (text: string) => process.stderr.write(`berth audit: ${text}\n`);
  return new RedisSoftState({
    url: redisUrl,
    onLost: (reason) => tell(`Redis does not answer (${reason}); until it does, dashboards show the laws as unknown`),
    onBack: () => tell("Redis answers again"),
  });
}

async function optionsOf(settings: Settings, apiUrl: string): Promise<AuditOptions> {
  const sources = { agents: settings.agents ?? [], journals: settings.journals ?? [] };
  const anySource = sources.agents.length + sources.journals.length > 0;
  return {
    apiUrl,
    cells: await readCellRecords(apiUrl),
    readGuests: anySource ? () => readGuests(sources) : undefined,
    pauseMs: settings.pause,
    patienceMs: settings.patience,
    conductorSettings: conductorSettingNames,
  };
}
