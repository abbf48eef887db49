import { mkdirSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { loadHostFilters } from "../adapters/modules/load-host-filters.ts";
import { postgresUrl } from "../adapters/postgres/client/postgres-url.ts";
import { type EmbeddedCloud, startCloud } from "../cloud/embedded-cloud.ts";
import { runService } from "../runtime/lifecycle.ts";
import { LOG_LEVELS } from "../runtime/logger.ts";
import { DATA_DIR, requireDirectory } from "../runtime/require-directory.ts";
import { directory, integer, listOf, oneOf, text } from "../runtime/setting-kinds.ts";
import { optional, setting } from "../runtime/settings.ts";
import { QUOTA_KINDS } from "../services/api/compute/quotas/quota-defaults.ts";
import { type AuthKind, TRIAL_AUTH_KINDS } from "../services/api/identity/auth-kind.ts";
import { keystoneOptions } from "../services/api/identity/keystone-options.ts";
import { refuseBadAuth } from "../services/api/identity/refuse-bad-auth.ts";
import { OWN_NETWORK_RULES } from "../services/api/network/network-rule.ts";
import { OWN_VOLUME_RULES } from "../services/api/volume/volume-rule.ts";
import { generateHosts } from "../services/compute-agent/host-config.ts";
import { qemuSettings } from "../services/compute-agent/qemu/qemu-settings.ts";
import { writeCloudsFile } from "./dev/clouds-file.ts";
import { consoleWords } from "./dev/console-words.ts";
import { bootFirstGuest } from "./dev/first-guest.ts";
import { greetingOf } from "./dev/greeting.ts";
import { networkNoteOf } from "./dev/network-note.ts";
import { requireFreePort } from "./dev/require-free-port.ts";
import { openTrialAccess, type TrialAccess } from "./dev/trial-access.ts";
import {
  makeVirtualHostsDirs,
  nanoImageFile,
  openVirtualHosts,
  type VirtualHostsDirs,
  virtualHosts,
} from "./dev/virtual-hosts.ts";
import { withCards } from "./dev/with-cards.ts";
import { removeApiAddress, writeApiAddress } from "./operators/api-address.ts";

/** The copies of images, and volumes, are kept in the data directory. */
const {
  imagesPath: _imagesPath,
  imageCache: _imageCache,
  volumeDir: _volumeDir,
  volumeMounts: _volumeMounts,
  ...ofVirtualMachines
} = qemuSettings;

const declaration = {
  command: "berth dev",
  about:
    "Runs a whole cloud in this process: embedded Postgres, all four services, hosts that pretend to build or run virtual machines.",
  settings: {
    // At the level of other services, each connection of an agent to a conductor is a line, and they bury what is printed for the reader.
    logLevel: setting(oneOf(...LOG_LEVELS), { about: "minimum level of log lines", default: "warn" }),
    cells: optional(integer({ min: 1, max: 20 }), { about: "number of cells; 3, or 1 with virtual machines" }),
    hosts: optional(integer({ min: 1, max: 100_000 }), {
      about: "total number of hosts; 30, or 2 with virtual machines, which share this machine",
    }),
    driver: setting(oneOf("fake", "qemu"), {
      about: "fake: hosts pretend to build; qemu: hosts run virtual machines, and one is booted at the start",
      default: "fake",
    }),
    ...ofVirtualMachines,
    port: setting(integer({ min: 0, max: 65_535 }), { about: "port of the Compute API on 127.0.0.1", default: "8774" }),
    schedulers: setting(integer({ min: 1, max: 16 }), { about: "schedulers", default: "2" }),
    conductors: setting(integer({ min: 1, max: 16 }), { about: "conductors of each cell", default: "2" }),
    auth: setting(oneOf(...TRIAL_AUTH_KINDS), {
      about: "how callers are known; password: by users of this cloud's own, with tokens and a catalog as of Keystone",
      default: "none",
    }),
    usersFile: optional(text(), {
      about: "users and their passwords, for --auth password; made up at the first start, in the data directory",
    }),
    ...keystoneOptions,
    quotas: optional(oneOf(...QUOTA_KINDS), {
      about: "limits of projects: Nova's, or unlimited (the default without authentication)",
    }),
    networks: setting(oneOf(...OWN_NETWORK_RULES), {
      about: "networks of servers: none, or simple, one that all projects share and that gives each server an address",
      default: "simple",
    }),
    volumes: setting(oneOf(...OWN_VOLUME_RULES), {
      about: "volumes of servers: none, or simple, those of the api's own Block Storage API",
      default: "simple",
    }),
    shelvedOffloadTime: setting(integer({ min: -1, max: 0 }), {
      about: "0 to offload servers as soon as they are shelved, -1 to leave that to shelveOffload",
      default: "-1",
    }),
    consoleWeb: optional(directory, {
      about: "directory of web pages that are served beside the consoles, such as /usr/share/novnc with noVNC",
    }),
    imagesPath: optional(directory, {
      about:
        "directory for the data of uploaded images; images in the data directory by default. Images are queued until their data is uploaded, except with hosts that pretend to build and the default directory",
    }),
    filters: optional(listOf(text()), { about: "modules with your own host filters" }),
    databaseUrl: optional(postgresUrl, { about: "use this Postgres instead of the embedded one" }),
    dataDir: setting(directory, { about: "directory for all data", default: ".berth" }),
  },
};

/** `berth dev`: serves until SIGINT or SIGTERM. */
export function runDevCommand(argv: readonly string[]): Promise<number> {
  let cloud: EmbeddedCloud | null = null;
  return runService(process, {
    name: "dev",
    argv,
    declaration,
    // Longer than the default, because its Postgres has to be shut down, too.
    closeDeadlineMs: 25_000,
    create: ({ settings, logger, fail }) => {
      const listen = { host: "127.0.0.1", port: settings.port };
      refuseBadAuth({ ...settings, listen, allowUnauthenticatedNetwork: false });
      const dataDir = resolve(settings.dataDir);
      requireDirectory(DATA_DIR, dataDir);
      const access = openTrialAccess(settings, dataDir, logger);
      const images = imagesOf(settings, dataDir);
      const dirs = settings.driver === "qemu" ? makeVirtualHostsDirs(dataDir, images.imagesPath) : null;
      const virtual = dirs === null ? {} : { openDriver: openVirtualHosts(settings, dirs, logger) };
      const cells = cellsOf(settings, dirs);
      return {
        async start() {
          await requireFreePort(settings.port);
          const filters = await loadHostFilters(settings.filters ?? []);
          cloud = await startCloud({
            databaseUrl: settings.databaseUrl,
            dataDir,
            cells,
            ...virtual,
            schedulers: settings.schedulers,
            conductors: settings.conductors,
            listen,
            auth: settings.auth,
            quotas: settings.quotas ?? (settings.auth === "none" ? "unlimited" : "nova"),
            networks: settings.networks,
            volumes: settings.volumes,
            shelvedOffloadTime: settings.shelvedOffloadTime,
            filters,
            keystone: access.keystone,
            isUnknownProject: access.isUnknownProject,
            placement: access.placement,
            mounts: access.mounts,
            dashboard: true,
            consoles: true,
            consoleWeb: settings.consoleWeb,
            ...images,
            logger,
            fail,
          });
          writeApiAddress(dataDir, cloud.apiUrl);
          const { apiUrl } = cloud;
          const { auth } = settings;
          const cloudsFile = writeCloudsFile(dataDir, { apiUrl, auth, users: access.users });
          const imageFile = dirs === null ? null : nanoImageFile(dirs);
          const words = await wordsOfFirstGuest({ apiUrl, auth }, access, dirs);
          const note = dirs === null ? "" : `${networkNoteOf(settings)}\n\n`;
          const hosts = cells.reduce((sum, cell) => sum + cell.hosts.length, 0);
          process.stdout.write(
            `${words}${note}${greetingOf({ apiUrl, auth, hosts, cells: cells.length, cloudsFile, imageFile })}\n`,
          );
        },
        close: async () => {
          removeApiAddress(dataDir);
          await cloud?.close();
          await access.close();
        },
      };
    },
    readyNote: () => cloud?.apiUrl ?? "",
  });
}

/** Makes the directory for the data of images, unless the user has given one. */
function imagesOf(
  { driver, imagesPath: given }: { readonly driver: "fake" | "qemu"; readonly imagesPath: string | null },
  dataDir: string,
): { readonly imagesPath: string; readonly imagesNeedData: boolean } {
  const imagesPath = given ?? join(dataDir, "images");
  if (given === null) mkdirSync(imagesPath, { recursive: true });
  // Hosts that pretend to build read no images, so that an image needs no data, and may have some.
  return { imagesPath, imagesNeedData: driver === "qemu" || given !== null };
}

type Cells = Parameters<typeof startCloud>[0]["cells"];

/** `cell-1`, `cell-2`, …, each with its share of the hosts. */
function cellsOf(
  asked: { readonly cells: number | null; readonly hosts: number | null },
  dirs: VirtualHostsDirs | null,
): Cells {
  const cells = asked.cells ?? (dirs === null ? 3 : 1);
  const hosts = asked.hosts ?? (dirs === null ? 30 : 2 * cells);
  return Array.from({ length: cells }, (_, index) => {
    const share = Math.floor(hosts / cells) + (index < hosts % cells ? 1 : 0);
    const name = `cell-${index + 1}`;
    const prefix = `${name}-host`;
    if (dirs !== null) return { name, hosts: virtualHosts(prefix, share, dirs) };
    const generated = generateHosts(prefix, share);
    return { name, hosts: index === 0 ? withCards(generated) : generated };
  });
}

/** Boots a first virtual machine and returns the output of its console. Empty without virtual machines, or without the login of an admin. */
async function wordsOfFirstGuest(
  { apiUrl, auth }: { readonly apiUrl: string; readonly auth: AuthKind },
  access: TrialAccess,
  dirs: VirtualHostsDirs | null,
): Promise<string> {
  const headers = dirs === null ? null : await access.adminHeaders();
  if (dirs === null || headers === null) return "";
  const { serverId, consoleLog, lines } = await bootFirstGuest(apiUrl, headers, dirs.instancesPath);
  return [
    `Server ${serverId} runs. Its console:`,
    "",
    ...lines.map((line) => `  ${line}`),
    "",
    `  tail -f ${relative(process.cwd(), consoleLog)}`,
    `  ${consoleWords(serverId, { apiUrl, auth })}`,
    "",
    "Virtual machines continue when this process ends, and the next one finds them. Delete the servers to end them.",
    "",
    "",
  ].join("\n");
}
