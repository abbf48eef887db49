import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { readSettings } from "../runtime/settings.ts";
import { refuseOpenNetwork } from "../services/api/identity/open-network.ts";
import { apiDeclaration } from "../services/api/settings.ts";
import { consoleProxyDeclaration } from "../services/console-proxy/settings.ts";
import { composeText } from "./compose-file.ts";
import { secretFiles } from "./secret-files.ts";

interface File {
  readonly services: Readonly<
    Record<
      string,
      {
        networks: string[];
        mem_limit: string;
        volumes?: string[];
        env_file?: string[];
        profiles?: string[];
        ports?: string[];
        environment?: Record<string, string>;
      }
    >
  >;
}

const three = composeText({ cells: 3, hosts: 50, secretsDir: "./secrets" });
const { services } = parse(three) as File;

test("the committed compose file equals the generated one for three cells", () => {
  expect(readFileSync(join(import.meta.dirname, "compose.yaml"), "utf8")).toBe(three);
});

test("conductors and agents are only on their own cell's network, and get nothing from above", () => {
  const inside = Object.entries(services).filter(([name]) => /-(conductor-\d|agent)$/.test(name));
  expect(inside).toHaveLength(9);
  for (const [name, service] of inside) {
    const cell = name.split("-")[0] ?? "";
    expect(service.networks).toEqual([cell]);
    for (const file of [...(service.env_file ?? []), ...(service.volumes ?? [])]) expect(file).toContain(cell);
  }
});

test("a conductor's secrets name the cell's own servers only", () => {
  const files = secretFiles(["cell1", "cell2"], (what) => what.replaceAll(" ", "-"));
  const hosts = [...(files["cell1-conductor.env"] ?? "").matchAll(/@([^:]+):/g)].map(([, host]) => host);
  expect(hosts).toEqual(["cell1-postgres", "cell1-nats"]);
});

test("the console proxy knows only the API database, and reaches every agent at the address that the agent names", () => {
  const { networks, env_file: files, environment } = services["console-proxy"] ?? { networks: [] };
  expect(networks).toEqual(["above", "cell1", "cell2", "cell3"]);
  expect(files).toEqual(["./secrets/console-proxy.env"]);
  const secrets = secretFiles(["cell1"], (what) => what.replaceAll(" ", "-"))["console-proxy.env"] ?? "";
  expect(secrets).toMatch(/^BERTH_DATABASE_URL=postgres:\/\/berth:postgres@postgres:5432\/berth\n$/);
  const env = { ...environment, BERTH_DATABASE_URL: "postgres://x/y", BERTH_OTLP_ENDPOINT: "" };
  const read = readSettings(consoleProxyDeclaration, { argv: [], env });
  expect(read).toMatchObject({ kind: "settings", settings: { listen: { host: "0.0.0.0", port: 6083 } } });
  for (const cell of ["cell1", "cell2", "cell3"]) {
    const agent = services[`${cell}-agent`];
    expect(agent?.networks).toEqual([cell]);
    expect(agent?.environment).toMatchObject({ BERTH_CONSOLE_LISTEN: ":6084", BERTH_CONSOLE_ADDRESS: `${cell}-agent` });
  }
  for (const api of ["api-1", "api-2"])
    expect(services[api]?.environment?.["BERTH_SERIAL_CONSOLE_BASE_URL"]).toBe(
      `ws://127.0.0.1:\${BERTH_CONSOLE_PORT:-6083}/`,
    );
});

test("three cells and everything that monitors them fit in 8 GiB", () => {
  const mib = Object.values(services).reduce((sum, { mem_limit: limit }) => sum + Number.parseInt(limit, 10), 0);
  expect(mib).toBeLessThanOrEqual(8_192);
});

test("no api starts before the operator has chosen how callers are authenticated", () => {
  const env = (given: Readonly<Record<string, string>>, name: string) => {
    const { environment = {} } = services[name] ?? {};
    const filled = Object.entries(environment).map(([key, value]) => [
      key,
      value.replace(/\$\{(\w+):-(.*)\}/, (_, variable: string, fallback: string) => given[variable] ?? fallback),
    ]);
    return { BERTH_DATABASE_URL: "postgres://x/y", BERTH_NATS_URL: "nats://x", ...Object.fromEntries(filled) };
  };
  const start = (given: Readonly<Record<string, string>>) => {
    for (const name of ["api-1", "api-2"]) {
      const read = readSettings(apiDeclaration, { argv: [], env: env(given, name) });
      if (read.kind === "settings") refuseOpenNetwork(read.settings);
    }
  };
  expect(() => start({})).toThrow(/BERTH_AUTH \(--auth\) is none.*--allow-unauthenticated-network/);
  expect(() => start({ BERTH_ALLOW_UNAUTHENTICATED_NETWORK: "true" })).not.toThrow();
  expect(() => start({ BERTH_AUTH: "keystone" })).not.toThrow();
});

test("the load balancer publishes its port only on loopback", () => {
  const published = Object.values(services).flatMap(({ ports = [] }) => ports);
  expect(published.length).toBeGreaterThan(0);
  expect(published.filter((port) => !port.startsWith("127.0.0.1:"))).toEqual([]);
});

test("the file contains no password", () => {
  expect(three.replaceAll(/BERTH_KEYSTONE_PASSWORD: \$\{BERTH_KEYSTONE_PASSWORD:-\}/g, "")).not.toMatch(/password/i);
});
