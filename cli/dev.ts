import { resolve } from "node:path";
import { postgresUrl } from "../adapters/postgres/client/postgres-url.ts";
import { type EmbeddedCloud, startCloud } from "../cloud/embedded-cloud.ts";
import { processSettings, runService } from "../runtime/lifecycle.ts";
import { integer, oneOf, text } from "../runtime/setting-kinds.ts";
import { optional, setting } from "../runtime/settings.ts";
import { AUTH_KINDS, type AuthKind } from "../services/api/identity/auth-kind.ts";
import { keystoneOptions } from "../services/api/identity/keystone-options.ts";
import { openKeystone } from "../services/api/identity/open-keystone.ts";
import { refuseBadAuth } from "../services/api/identity/refuse-bad-auth.ts";
import { generateHosts } from "../services/compute-agent/host-config.ts";
import { removeApiAddress, writeApiAddress } from "./operators/api-address.ts";

const declaration = {
  command: "berth dev",
  about: "Runs a whole cloud in this process: embedded Postgres, all four services, hosts that only pretend to build.",
  settings: {
    ...processSettings,
    cells: setting(integer({ min: 1, max: 20 }), { about: "cells", default: "3" }),
    hosts: setting(integer({ min: 1, max: 100_000 }), { about: "hosts in all, spread over the cells", default: "30" }),
    port: setting(integer({ min: 0, max: 65_535 }), { about: "port of the Compute API on 127.0.0.1", default: "8774" }),
    schedulers: setting(integer({ min: 1, max: 16 }), { about: "schedulers", default: "2" }),
    conductors: setting(integer({ min: 1, max: 16 }), { about: "conductors of each cell", default: "2" }),
    auth: setting(oneOf(...AUTH_KINDS), { about: "how callers are known", default: "none" }),
    ...keystoneOptions,
    databaseUrl: optional(postgresUrl, { about: "use this Postgres instead of the embedded one" }),
    dataDir: setting(text(), { about: "where everything is kept", default: ".berth" }),
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
      const keystone = settings.auth === "keystone" ? openKeystone(settings, logger) : null;
      return {
        async start() {
          cloud = await startCloud({
            databaseUrl: settings.databaseUrl,
            dataDir: resolve(settings.dataDir),
            cells: cellsOf(settings),
            schedulers: settings.schedulers,
            conductors: settings.conductors,
            listen,
            auth: settings.auth,
            keystone: keystone?.authenticate ?? null,
            dashboard: true,
            logger,
            fail,
          });
          writeApiAddress(resolve(settings.dataDir), cloud.apiUrl);
          process.stdout.write(`${greeting(cloud.apiUrl, settings)}\n`);
        },
        close: async () => {
          removeApiAddress(resolve(settings.dataDir));
          await cloud?.close();
          await keystone?.close();
        },
      };
    },
    readyNote: () => cloud?.apiUrl ?? "",
  });
}

/** `cell-1`, `cell-2`, …, each with its share of the hosts. */
function cellsOf({ cells, hosts }: { readonly cells: number; readonly hosts: number }) {
  return Array.from({ length: cells }, (_, index) => {
    const share = Math.floor(hosts / cells) + (index < hosts % cells ? 1 : 0);
    const name = `cell-${index + 1}`;
    return { name, hosts: generateHosts(`${name}-host`, share) };
  });
}

/** The header that callers have to send, for each kind of authentication. */
const TOKEN_OPTION: Readonly<Record<AuthKind, string>> = {
  none: "",
  noauth2: " -H 'x-auth-token: admin'",
  keystone: " -H 'x-auth-token: TOKEN'",
};

function greeting(
  apiUrl: string,
  { cells, hosts, auth }: { readonly cells: number; readonly hosts: number; readonly auth: AuthKind },
): string {
  const token = TOKEN_OPTION[auth];
  const json = `${token} -H 'content-type: application/json'`;
  return [
    `${hosts} hosts in ${cells} cells. See it: ${apiUrl}/dashboard`,
    "",
    "Try:",
    "",
    `  curl -s ${apiUrl}/v2.1/flavors${json} -d '{"flavor": {"id": "small", "name": "small", "vcpus": 2, "ram": 4096, "disk": 20}}'`,
    `  curl -s ${apiUrl}/v2.1/servers${json} -d '{"server": {"name": "first", "flavorRef": "small", "imageRef": "", "networks": "none"}}'`,
    `  curl -s ${apiUrl}/v2.1/servers/detail${token}`,
    `  curl -s ${apiUrl}/v2.1/os-hypervisors/detail${token}`,
    `  curl -s -X DELETE ${apiUrl}/v2.1/servers/ID${token}`,
    "",
  ].join("\n");
}
