import { resolve } from "node:path";
import { certificatePlan, SameFileError } from "../deploy/certificate-plan.ts";
import { type CertificateReport, MissingKeyError, makeCertificates } from "../deploy/make-certificates.ts";
import { systemClock } from "../runtime/clock.ts";
import { boolean, integer, listOf, text } from "../runtime/setting-kinds.ts";
import { optional, SettingsError, setting } from "../runtime/settings.ts";
import { runCommand } from "./run-command.ts";

const cellName = text({ pattern: /^[a-z0-9][a-z0-9-]{0,39}$/, allowed: "lower-case letters, digits and dashes" });
const hostName = text({ pattern: /^[A-Za-z0-9][A-Za-z0-9.:-]{0,252}$/, allowed: "a host name or an address" });

const declaration = {
  command: "berth certs",
  about:
    "Makes certificate authorities, one for the API tier's servers and one for each cell, and certificates of NATS, Postgres, conductors and agents. What is there is kept.",
  settings: {
    out: setting(text(), { about: "directory of the files", default: "certs" }),
    cells: setting(listOf(cellName), { about: "names of the cells", default: "cell1,cell2,cell3" }),
    names: optional(listOf(hostName), {
      about:
        "hosts that get a certificate from every cell's authority, beside those of the compose file: CELL-HOST.pem",
    }),
    days: setting(integer({ min: 1, max: 3_650 }), { about: "how long a certificate lasts", default: "825" }),
    renew: setting(boolean, {
      about: "make those anew that expire soon, or were issued by another authority",
      default: "false",
    }),
    renewWithin: setting(integer({ min: 0, max: 3_650 }), { about: "days that count as soon", default: "30" }),
    force: setting(boolean, { about: "make everything anew, authorities and their keys too", default: "false" }),
  },
};

const WORDS: Readonly<Record<CertificateReport["state"], string>> = {
  made: "made",
  renewed: "renewed",
  kept: "kept",
  expiring: "kept, but expires soon",
  foreign: "kept, but issued by another authority",
};

/** `berth certs`: a line for each certificate; exit code 1 when some that are kept will not do. */
export function run(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async ({ out, cells, names, days, renew, renewWithin, force }) => {
    if (renew && force) throw new SettingsError("give either --renew or --force");
    const plan = planOf(cells, names ?? []);
    const replace = force ? "force" : renew ? "renew" : "missing";
    const options = { nowMs: systemClock.now(), days, renewWithinDays: renewWithin, replace } as const;
    try {
      const reports = await makeCertificates(resolve(out), plan, options);
      for (const { file, state, validTo } of reports) {
        process.stdout.write(`${file}\t${validTo.toISOString().slice(0, 10)}\t${WORDS[state]}\n`);
      }
      const bad = reports.filter(({ state }) => state === "expiring" || state === "foreign");
      if (bad.length === 0) return 0;
      process.stderr.write(`berth certs: ${bad.length} will not do: --renew, or --force where authorities expire\n`);
      return 1;
    } catch (error) {
      if (!(error instanceof MissingKeyError)) throw error;
      process.stderr.write(`berth certs: ${error.message}\n`);
      return 1;
    }
  });
}

function planOf(cells: readonly string[], names: readonly string[]) {
  try {
    return certificatePlan(cells, names);
  } catch (error) {
    throw error instanceof SameFileError ? new SettingsError(error.message) : error;
  }
}
