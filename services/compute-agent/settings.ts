import { processSettings } from "../../runtime/lifecycle.ts";
import { boolean, directory, hostPort, integer, type Kind, listOf, text } from "../../runtime/setting-kinds.ts";
import { optional, SettingsError, setting, type ValuesOf } from "../../runtime/settings.ts";
import { DiscoveredHost } from "./discovered-host.ts";
import { discoverySettings } from "./discovery-settings.ts";
import { driverSetting } from "./driver-setting.ts";
import { type FakeScript, parseScript } from "./fake-script.ts";
import { generateHosts } from "./host-config.ts";
import { fixedHosts, type HostSource, hostsOfFile } from "./host-source.ts";
import { lxdSettings } from "./lxd/lxd-settings.ts";
import { qemuSettings } from "./qemu/qemu-settings.ts";

const name = text({ pattern: /^[A-Za-z0-9._-]{1,100}$/, allowed: "letters, digits, dots, dashes and underscores" });
const address = text({ pattern: /^\S+:\d{1,5}$/, allowed: "host:port" });
const script: Kind<FakeScript> = {
  allowed: "a script of the fake driver as JSON",
  placeholder: "JSON",
  parse: (given) => {
    try {
      return parseScript(given);
    } catch {
      return undefined;
    }
  },
};

export const agentDeclaration = {
  command: "berth compute-agent",
  about: "Manages hosts: reports their resources and builds servers on them.",
  settings: {
    ...processSettings,
    agentId: setting(name, { about: "name of this agent; it must stay the same after a restart" }),
    conductors: setting(listOf(address), { about: "addresses of all conductors of the cell" }),
    hostsFile: optional(text(), { about: "JSON file with the hosts; see docs/compute-agent.md" }),
    hosts: optional(integer({ min: 1, max: 100_000 }), {
      about: "instead of a file: the number of equal hosts, which are named after the agent",
    }),
    discover: setting(boolean, {
      about: "instead of both: the only host is this machine, with its real hardware",
      default: "false",
    }),
    updateResourcesSeconds: setting(integer({ min: 1, max: 86_400 }), {
      about: "how often a discovered machine is inspected again",
      default: "60",
    }),
    ...discoverySettings,
    driver: driverSetting,
    ...qemuSettings,
    ...lxdSettings,
    dataDir: setting(directory, { about: "directory of the journal", default: ".berth" }),
    buildLimit: setting(integer({ min: 1, max: 10_000 }), {
      about: "maximum number of concurrent builds on one host",
      default: "10",
    }),
    resumeGuests: setting(boolean, {
      about:
        "start the guests of ACTIVE servers again after a restart of the host; otherwise these servers become SHUTOFF (Nova's resume_guests_state_on_host_boot)",
      default: "true",
    }),
    fake: optional(script, { about: "script of the fake driver for hosts without their own" }),
    fakeByMetadata: setting(boolean, {
      about:
        "accept such a script in the metadata of users' servers (berth:fake). Only for tests: any user can then crash the agent",
      default: "false",
    }),
    seed: setting(integer({ min: 0, max: 2 ** 31 }), {
      about: "seed that selects the builds to which a script's probability applies",
      default: "1",
    }),
    metricsListen: setting(hostPort, {
      about: "address of /healthz, /readyz, /metrics and /guests",
      default: "127.0.0.1:0",
    }),
    consoleListen: optional(hostPort, {
      about:
        "address at which console proxies reach the consoles of guests, for example 0.0.0.0:0 (any port); without it no console can be opened",
    }),
    consoleAddress: optional(text(), {
      about: "host name or address of this machine that console proxies are told; otherwise that of --console-listen",
    }),
    tlsCa: optional(text(), {
      about: "file of the CA that signs conductors' certificates; with --tls-cert and --tls-key",
    }),
    tlsCert: optional(text(), { about: "file of this agent's certificate" }),
    tlsKey: optional(text(), { about: "file of its key" }),
  },
} as const;

export type AgentOptions = ValuesOf<typeof agentDeclaration.settings>;

/** The source of the hosts that a process must carry. Throws a SettingsError unless exactly one source is given. */
export function hostSourceOf(options: AgentOptions): HostSource {
  const { agentId, hostsFile, hosts, discover, fake } = options;
  if ([hostsFile !== null, hosts !== null, discover].filter(Boolean).length !== 1)
    throw new SettingsError(
      "give one of BERTH_HOSTS_FILE (--hosts-file), BERTH_HOSTS (--hosts) and BERTH_DISCOVER (--discover)",
    );
  const source =
    hostsFile !== null
      ? hostsOfFile(hostsFile)
      : discover
        ? new DiscoveredHost(options)
        : fixedHosts(generateHosts(agentId, hosts ?? 1));
  if (fake === null) return source;
  return {
    isLive: source.isLive,
    layoutOf: (host) => source.layoutOf(host),
    look: () => {
      const seen = source.look();
      return { ...seen, hosts: seen.hosts.map((host) => ({ fake, ...host })) };
    },
  };
}
