import { refuseMissingTools } from "../../adapters/qemu/refuse-missing-tools.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { Driver } from "./driver.ts";
import { FakeDriver } from "./fake-driver.ts";
import type { HostConfig } from "./host-config.ts";
import type { HostSource } from "./host-source.ts";
import type { GuestName } from "./journal.ts";
import type { LxdDriver } from "./lxd/lxd-driver.ts";
import { openLxdDriver } from "./lxd/open-lxd-driver.ts";
import { openQemuDriver } from "./qemu/open-qemu-driver.ts";
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
}

/** The surroundings of a driver. A script of the fake driver may call `crash` and `loseConnections`. */
interface DriverSurroundings {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly crash: () => void;
  readonly loseConnections: () => void;
}

/** Opens the driver that the settings name. */
export function openDriver(options: AgentOptions, surroundings: DriverSurroundings): OpenedDriver {
  switch (options.driver) {
    case "qemu":
      refuseMissingTools();
      return openReal(options, surroundings, openQemuDriver);
    case "lxd":
      return openReal(options, surroundings, openLxdDriver);
    case "fake":
      return openFakeDriver(options, surroundings);
    default:
      return options.driver satisfies never;
  }
}

/** Opens a driver whose guests are real. Its facts about the hypervisor are added to the hosts. */
function openReal(
  options: AgentOptions,
  surroundings: DriverSurroundings,
  open: (
    options: AgentOptions,
    surroundings: DriverSurroundings & Pick<HostSource, "layoutOf">,
  ) => { readonly driver: QemuDriver | LxdDriver; readonly hypervisor: Hypervisor },
): OpenedDriver {
  const hosts = hostSourceOf(options);
  const { driver, hypervisor } = open(options, { ...surroundings, layoutOf: (host) => hosts.layoutOf(host) });
  const source = withHypervisor(hosts, hypervisor);
  const guests = () => driver.guests(new Set(source.look().hosts.map(({ name }) => name)));
  return { driver, source, guests, close: () => driver.close() };
}

function openFakeDriver(options: AgentOptions, surroundings: DriverSurroundings): OpenedDriver {
  const source = hostSourceOf(options);
  const { clock, crash, loseConnections } = surroundings;
  const { seed, fakeByMetadata: byMetadata } = options;
  const { hosts } = source.look();
  const scripts = new Map(hosts.flatMap((host) => (host.fake === undefined ? [] : [[host.name, host.fake] as const])));
  const driver = new FakeDriver({ clock, seed, scripts, byMetadata, crash, loseConnections });
  return { driver, source, guests: async () => driver.guests(), close: () => undefined };
}

/** Adds the driver's facts about the hypervisor to the hosts. Their other facts stay. */
function withHypervisor(source: HostSource, hypervisor: Hypervisor): HostSource {
  return {
    isLive: source.isLive,
    layoutOf: (host) => source.layoutOf(host),
    look: () => {
      const seen = source.look();
      return {
        ...seen,
        hosts: seen.hosts.map((host) => ({ ...host, hypervisor: { ...host.hypervisor, ...hypervisor } })),
      };
    },
  };
}
