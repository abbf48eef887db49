import { type HostConfig, readHostsFile } from "./host-config.ts";

/** A look at the hosts: what they offer now, and a sentence for each value that is unknown or doubtful. */
export interface LookAtHosts {
  readonly hosts: readonly HostConfig[];
  readonly warnings: readonly string[];
}

/** The place that an agent's hosts come from. */
export interface HostSource {
  /** Whether hosts change by themselves, so that they must be looked at from time to time. */
  readonly isLive: boolean;
  /** Looks at the hosts. Throws a SettingsError when an operator's input is wrong. */
  look(): LookAtHosts;
}

/** Hosts that never change. */
export function fixedHosts(hosts: readonly HostConfig[]): HostSource {
  return { isLive: false, look: () => ({ hosts, warnings: [] }) };
}

/** The hosts of a hosts file. It is read only when an operator asks for it, because at any other time it may be half written. */
export function hostsOfFile(path: string): HostSource {
  return { isLive: false, look: () => ({ hosts: readHostsFile(path), warnings: [] }) };
}
