import type { MachineLayout } from "../../core/pinning/machine-layout.ts";
import { type HostConfig, readHostsFile } from "./host-config.ts";

/** A look at the hosts: what they offer now, and a sentence for each value that is unknown or doubtful. */
export interface LookAtHosts {
  readonly hosts: readonly HostConfig[];
  readonly warnings: readonly string[];
}

/** Hosts that may change while the agent runs. */
export interface WatchedHosts {
  /** Whether hosts change by themselves, so that they must be looked at from time to time. */
  readonly isLive: boolean;
  /** Looks at the hosts. Throws a SettingsError when an operator's input is wrong. */
  look(): LookAtHosts;
  /** The hosts as they were last looked at, with what their driver knows of them now. Absent if the driver changes nothing of them. */
  present?(): LookAtHosts;
  /** `onChanged` is called whenever `present` may have changed. */
  watch?(onChanged: () => void): void;
}

/** The place that an agent's hosts come from. */
export interface HostSource extends WatchedHosts {
  /** The CPUs behind the resource providers of a host, as it was last looked at. Null for a host that only says how many it has. */
  layoutOf(host: string): MachineLayout | null;
}

/** Hosts that never change. */
export function fixedHosts(hosts: readonly HostConfig[]): HostSource {
  return { isLive: false, look: () => ({ hosts, warnings: [] }), layoutOf: () => null };
}

/** The hosts of a hosts file. It is read only when an operator asks for it, because at any other time it may be half written. */
export function hostsOfFile(path: string): HostSource {
  return { isLive: false, look: () => ({ hosts: readHostsFile(path), warnings: [] }), layoutOf: () => null };
}
