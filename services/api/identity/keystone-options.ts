import { loginOf, loginOptions } from "../../../adapters/openstack/login-options.ts";
import { duration, url } from "../../../runtime/setting-kinds.ts";
import { optional, setting, type ValuesOf } from "../../../runtime/settings.ts";
import { DEFAULT_KEYSTONE_SETTINGS, type KeystoneSettings } from "./keystone-settings.ts";

/** The settings for authenticating callers by Keystone. Spread them into a declaration. */
export const keystoneOptions = {
  ...loginOptions,
  keystoneCacheTtl: setting(duration({ minMs: 0, maxMs: 3_600_000 }), {
    about: "how long a validated token is cached",
    default: "300s",
  }),
  tokenCacheUrl: optional(url("redis", "rediss"), {
    about: "URL of the Redis in which processes share their cached tokens",
  }),
};

export type KeystoneOptions = ValuesOf<typeof keystoneOptions>;

/** The settings in the form that the authenticator needs. Throws `SettingsError` when they are incomplete. */
export function keystoneSettings(options: KeystoneOptions): KeystoneSettings {
  return {
    ...DEFAULT_KEYSTONE_SETTINGS,
    ...loginOf(options, "--auth keystone needs it"),
    cacheTtlMs: options.keystoneCacheTtl,
  };
}
