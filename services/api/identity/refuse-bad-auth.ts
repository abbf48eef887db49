import type { HostPort } from "../../../runtime/setting-kinds.ts";
import type { AuthKind } from "./auth-kind.ts";
import { type KeystoneOptions, keystoneSettings } from "./keystone-options.ts";
import { refuseOpenNetwork } from "./open-network.ts";

export type AuthOptions = KeystoneOptions & {
  readonly auth: AuthKind;
  readonly listen: HostPort;
  readonly allowUnauthenticatedNetwork: boolean;
};

/**
 * Throws a `SettingsError` when callers cannot be authenticated with these settings, or would not be on an address that other machines
 * reach.
 */
export function refuseBadAuth(options: AuthOptions): void {
  refuseOpenNetwork(options);
  if (options.auth === "keystone") keystoneSettings(options);
}
