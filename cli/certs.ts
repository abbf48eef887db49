import { resolve } from "node:path";
import { certificatePlan, SameFileError } from "../deploy/certificate-plan.ts";
import { certificatesText, isUsable } from "../deploy/certificates-text.ts";
import { MissingKeyError, makeCertificates } from "../deploy/make-certificates.ts";
import { systemClock } from "../runtime/clock.ts";
import { requireDirectory } from "../runtime/require-directory.ts";
import { boolean, directory, integer, type Kind, listOf, text } from "../runtime/setting-kinds.ts";
import { optional, SettingsError, setting, type ValuesOf } from "../runtime/settings.ts";
import { runCommand } from "./run-command.ts";

const cellName = text({ pattern: /^[a-z0-9][a-z0-9-]{0,39}$/, allowed: "lower-case letters, digits and dashes" });
const hostName = text({ pattern: /^[A-Za-z0-9][A-Za-z0-9.:-]{0,252}$/, allowed: "a host name or an address" });

const AGENT_FORM =
  /^(?:(?<cell>[a-z0-9][a-z0-9-]{0,39})\/)?(?<id>[A-Za-z0-9._-]{1,100})=(?<hosts>[A-Za-z0-9._*+-]{1,2000})$/;
const agentForm: Kind<{ readonly cell: string | undefined; readonly id: string; readonly hosts: readonly string[] }> = {
  allowed: "[CELL/]ID=HOSTS, where HOSTS are names with + between them and * for any characters",
  placeholder: "AGENT",
  parse: (given) => {
    const { cell, id, hosts } = AGENT_FORM.exec(given)?.groups ?? {};
    const patterns = hosts?.split("+") ?? [];
    return id === undefined || patterns.includes("") ? undefined : { cell, id, hosts: patterns };
  },
};

const declaration = {
  command: "berth certs",
  about:
    "Creates certificate authorities, one for the API tier's servers and one for each cell, and certificates for NATS, Postgres, conductors and agents. Existing files are kept.",
  settings: {
    out: setting(directory, { about: "directory of the files", default: "certs" }),
    cells: setting(listOf(cellName), { about: "names of the cells", default: "cell1,cell2,cell3" }),
    names: optional(listOf(hostName), {
      about: "additional hosts that get a certificate from every cell's authority: CELL-HOST.pem",
    }),
    agentHosts: optional(listOf(agentForm), {
      about:
        "additional agents that get a certificate: CELL-ID.pem. The agent may have only these hosts; CELL/ may be left out if there is only one cell",
    }),
    days: setting(integer({ min: 1, max: 3_650 }), { about: "how long a certificate is valid", default: "825" }),
    renew: setting(boolean, {
      about: "replace certificates that expire soon, name other agents or hosts, or were issued by another authority",
      default: "false",
    }),
    renewWithin: setting(integer({ min: 0, max: 3_650 }), {
      about: "certificates that expire within this number of days are renewed",
      default: "30",
    }),
    force: setting(boolean, { about: "replace everything, including authorities and their keys", default: "false" }),
  },
};

/** `berth certs`: prints a line for each certificate. The exit code is 1 when a certificate that is kept is not usable. */
export function runCertsCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    const { out, days, renew, renewWithin, force } = settings;
    if (renew && force) throw new SettingsError("--renew and --force exclude each other: give one of them");
    const plan = planOf(settings);
    const replace = force ? "force" : renew ? "renew" : "missing";
    const options = { nowMs: systemClock.now(), days, renewWithinDays: renewWithin, replace } as const;
    requireDirectory("BERTH_OUT (--out)", out, 0o700);
    try {
      const reports = await makeCertificates(resolve(out), plan, options);
      process.stdout.write(certificatesText(reports));
      const bad = reports.filter(({ state }) => !isUsable(state)).length;
      if (bad === 0) return 0;
      process.stderr.write(
        `berth certs: ${bad === 1 ? "a certificate" : `${bad} certificates`} cannot be used: run it with --renew and the --names and --agent-hosts that they were made with, or with --force if authorities expire\n`,
      );
      return 1;
    } catch (error) {
      if (!(error instanceof MissingKeyError)) throw error;
      process.stderr.write(`berth certs: ${error.message}\n`);
      return 1;
    }
  });
}

function planOf({ cells, names, agentHosts }: ValuesOf<typeof declaration.settings>) {
  const placed = (agentHosts ?? []).map((agent) => {
    const cell = agent.cell ?? (cells.length === 1 ? cells[0] : undefined);
    if (cell !== undefined && cells.includes(cell)) return { ...agent, cell };
    throw new SettingsError(
      `BERTH_AGENT_HOSTS (--agent-hosts): agent ${agent.id} belongs to ${cell === undefined ? "no cell" : `cell ${cell}`}; write CELL/${agent.id}=…, where CELL is one of ${cells.join(", ")}`,
    );
  });
  try {
    return certificatePlan(cells, names ?? [], placed);
  } catch (error) {
    throw error instanceof SameFileError ? new SettingsError(error.message) : error;
  }
}
