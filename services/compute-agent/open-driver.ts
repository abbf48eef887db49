import { join } from "node:path";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { Driver } from "./driver.ts";
import type { HostConfig } from "./host-config.ts";
import type { HostSource, LookAtHosts } from "./host-source.ts";
import { hostsOfNodes, hostsWithoutNodes, reserved } from "./hosts-of-nodes.ts";
import type { GuestName } from "./journal.ts";
import type { LxdDriver } from "./lxd/lxd-driver.ts";
import { MetalNodes } from "./metal-nodes.ts";
import { fileNodeStore } from "./node-store.ts";
import type { QemuDriver } from "./qemu/qemu-driver.ts";
import { type AgentOptions, hostSourceOf } from "./settings.ts";

type Hypervisor = NonNullable<HostConfig["hypervisor"]>;

/** A driver with the additional functions that its owner needs. */
export interface OwnedDriver {
  readonly driver: Driver;
  /** The guests that really exist, for an auditor. */
  guests(): Promise<readonly (GuestName & { readonly running: boolean })[]>;
  /** Leaves the guests as they are. */
  close(): void;
}

/** The driver of an agent's process, with the hosts that it works on. */
export interface OpenedDriver extends OwnedDriver {
  readonly source: HostSource;
  /** Rejects with a SettingsError if guests cannot be built as the settings say. Absent if nothing has to be looked at. */
  ready?(): Promise<void>;
  /** The bare metal nodes that no further server can have, with the reasons. Absent if the driver has no nodes. */
  closedNodes?(): Readonly<Record<string, string>>;
  /** Writes nothing of the nodes any more. Called before the journal's lock is released. Absent if the driver has no nodes. */
  leaveNodes?(): void;
}

/** The surroundings of a driver. A script of the fake driver may call `crash` and `loseConnections`. */
interface DriverSurroundings {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly crash: () => void;
  readonly loseConnections: () => void;
}

/** Opens the driver that the settings name. The others are not loaded, since every start of an agent would take longer. */
export async function openDriver(options: AgentOptions, surroundings: DriverSurroundings): Promise<OpenedDriver> {
  switch (options.driver) {
    case "qemu": {
      const { refuseMissingTools } = await import("../../adapters/qemu/refuse-missing-tools.ts");
      const { openQemuDriver } = await import("./qemu/open-qemu-driver.ts");
      refuseMissingTools();
      // Agents of several machines may share the directory of the guests, but not this one.
      const own = (name: string) => join(options.dataDir, `${options.agentId}.${name}.json`);
      const directoryNote = join(options.dataDir, `${options.agentId}.instances`);
      const files = { cpuFlagsFile: own("cpu-flags"), functionNotes: own("functions"), directoryNote };
      return openReal(options, surroundings, (settings, more) => openQemuDriver(settings, { ...more, ...files }));
    }
    case "lxd":
      return openReal(options, surroundings, (await import("./lxd/open-lxd-driver.ts")).openLxdDriver);
    case "fake":
      return openFakeDriver(options, surroundings);
    default:
      return options.driver satisfies never;
  }
}

interface OpenedReal {
  readonly driver: QemuDriver | LxdDriver;
  readonly hypervisor: Hypervisor;
  /** `onChanged` is called when `hypervisor` or `closedBecause` has changed. Absent if they never change. */
  watch?(onChanged: () => void): void;
  ready?(): Promise<void>;
  /** Why no guest can be built at present, or null. Absent if one always can. */
  closedBecause?(): string | null;
  close?(): void;
}

/** Opens a driver whose guests are real. Its facts about the hypervisor are added to the hosts. */
function openReal(
  options: AgentOptions,
  surroundings: DriverSurroundings,
  open: (options: AgentOptions, surroundings: DriverSurroundings & Pick<HostSource, "layoutOf">) => OpenedReal,
): OpenedDriver {
  const hosts = hostsWithoutNodes(hostSourceOf(options));
  const opened = open(options, { ...surroundings, layoutOf: (host) => hosts.layoutOf(host) });
  const { driver } = opened;
  const source = withHypervisor(hosts, opened);
  const guests = () => driver.guests(new Set(source.look().hosts.map(({ name }) => name)));
  const close = () => (opened.close === undefined ? driver.close() : opened.close());
  return { driver, source, guests, close, ...(opened.ready && { ready: () => opened.ready?.() ?? Promise.resolve() }) };
}

async function openFakeDriver(options: AgentOptions, surroundings: DriverSurroundings): Promise<OpenedDriver> {
  const { FakeDriver } = await import("./fake-driver.ts");
  const { clock, logger, crash, loseConnections } = surroundings;
  const { seed, fakeByMetadata: byMetadata, agentId, dataDir } = options;
  const store = fileNodeStore(join(dataDir, `${agentId}.nodes.json`));
  const nodes = new MetalNodes({
    ...{ clock, store, onState: (host, reason) => logNode(logger, host, reason) },
    onUnsaved: (host, reason) =>
      logger.warn(
        { host, reason },
        "the end of the node's cleaning could not be stored and is stored later: make sure that the file can be written",
      ),
  });
  const source = hostsOfNodes(hostSourceOf(options), nodes);
  const { hosts } = source.look();
  const scripts = new Map(hosts.flatMap((host) => (host.fake === undefined ? [] : [[host.name, host.fake] as const])));
  const driver = new FakeDriver({ clock, seed, scripts, byMetadata, crash, loseConnections, nodes });
  const closedNodes = () => nodes.closed();
  return {
    driver,
    source,
    guests: async () => driver.guests(),
    closedNodes,
    leaveNodes: () => nodes.close(),
    close: () => {},
  };
}

function logNode(logger: Logger, host: string, reason: string | null): void {
  if (reason === null) logger.info({ host }, "servers can have the bare metal node again");
  else logger.info({ host, reason }, "no further server can have the bare metal node, for the given reason");
}

/**
 * Adds the driver's facts about the hypervisor to the hosts. Their other facts stay, and so do CPU flags and an address that an operator has written. Hosts on which no guest can be built are
 * reserved, so that no server claims them.
 */
function withHypervisor(
  source: HostSource,
  opened: Pick<OpenedReal, "hypervisor" | "watch" | "closedBecause">,
): HostSource {
  let last: LookAtHosts | null = null;
  const withFacts = (seen: LookAtHosts): LookAtHosts => ({
    ...seen,
    hosts: seen.hosts.map((host) => {
      const flags = host.hypervisor?.guest_cpu_flags ?? opened.hypervisor.guest_cpu_flags;
      const ofCpus = flags === undefined ? {} : { guest_cpu_flags: flags };
      const address = host.hypervisor?.host_ip ?? opened.hypervisor.host_ip;
      const ofNetwork = address === undefined ? {} : { host_ip: address };
      const closedBecause = opened.closedBecause?.() ?? "";
      const closed = closedBecause === "" ? host : { ...reserved(host), closedBecause };
      return { ...closed, hypervisor: { ...host.hypervisor, ...opened.hypervisor, ...ofCpus, ...ofNetwork } };
    }),
  });
  const look = () => {
    last = source.look();
    return withFacts(last);
  };
  return {
    isLive: source.isLive,
    layoutOf: (host) => source.layoutOf(host),
    look,
    ...(opened.watch && {
      present: () => (last === null ? look() : withFacts(last)),
      watch: (onChanged: () => void) => opened.watch?.(onChanged),
    }),
  };
}
