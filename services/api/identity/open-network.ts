import { addressText } from "../../../runtime/address-text.ts";
import { isLoopbackHost } from "../../../runtime/loopback.ts";
import { boolean, type HostPort } from "../../../runtime/setting-kinds.ts";
import { SettingsError, setting } from "../../../runtime/settings.ts";
import type { AuthKind } from "./auth-kind.ts";

/** The setting that lets an API trust unauthenticated callers on other machines. Spread it into a declaration of settings. */
export const openNetworkOptions = {
  allowUnauthenticatedNetwork: setting(boolean, {
    about: "listen beyond this machine although callers are not authenticated (--auth none, noauth2)",
    default: "false",
  }),
};

/**
 * Throws a `SettingsError` when an api without authentication would listen beyond this machine. Under `none` and `noauth2`, everybody who
 * reaches the address can be an administrator.
 */
export function refuseOpenNetwork(options: {
  readonly auth: AuthKind;
  readonly listen: HostPort;
  readonly allowUnauthenticatedNetwork: boolean;
}): void {
  const { auth, listen } = options;
  if (auth === "keystone" || auth === "password" || options.allowUnauthenticatedNetwork || isLoopbackHost(listen.host))
    return;
  throw new SettingsError(
    `BERTH_LISTEN (--listen) is ${addressText(listen)} and BERTH_AUTH (--auth) is ${auth}: any client that reaches that address would be an administrator. Set BERTH_AUTH=keystone, listen on 127.0.0.1, or give BERTH_ALLOW_UNAUTHENTICATED_NETWORK=true (--allow-unauthenticated-network) if the network keeps other clients out`,
  );
}
