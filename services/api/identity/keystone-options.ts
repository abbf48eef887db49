import { duration, type Kind, text, url } from "../../../runtime/setting-kinds.ts";
import { optional, SettingsError, setting, type ValuesOf } from "../../../runtime/settings.ts";
import { DEFAULT_KEYSTONE_SETTINGS, type KeystoneSettings } from "./keystone-settings.ts";

const password: Kind<string> = { ...text(), secret: true };

/** The settings for authenticating callers by Keystone. Spread them into a declaration. */
export const keystoneOptions = {
  keystoneUrl: optional(url("http", "https"), {
    about: "URL of Keystone, like http://keystone:5000/v3; for --auth keystone",
  }),
  keystoneUser: setting(text(), { about: "the user that validates tokens", default: "placement" }),
  keystonePassword: optional(password, { about: "that user's password; give it in the environment or in a file" }),
  keystoneProject: setting(text(), { about: "that user's project", default: "service" }),
  keystoneUserDomain: setting(text(), {
    about: "the user's domain",
    default: DEFAULT_KEYSTONE_SETTINGS.userDomain,
  }),
  keystoneProjectDomain: setting(text(), {
    about: "the project's domain",
    default: DEFAULT_KEYSTONE_SETTINGS.projectDomain,
  }),
  keystoneCacheTtl: setting(duration({ minMs: 0, maxMs: 3_600_000 }), {
    about: "how long a validated token is cached",
    default: "300s",
  }),
  tokenCacheUrl: optional(url("redis", "rediss"), {
    about: "URL of the Redis in which processes share their cached tokens",
  }),
};

export type KeystoneOptions = ValuesOf<typeof keystoneOptions>;

/** The missing settings of `--auth keystone`, one line each. */
export function keystoneFaults({ keystoneUrl, keystonePassword }: KeystoneOptions): readonly string[] {
  const missing = [
    ...(keystoneUrl === null ? ["BERTH_KEYSTONE_URL (--keystone-url)"] : []),
    ...(keystonePassword === null ? ["BERTH_KEYSTONE_PASSWORD (--keystone-password)"] : []),
  ];
  return missing.map((name) => `${name} is missing: --auth keystone needs it`);
}

/** The settings in the form that the authenticator needs. Throws `SettingsError` when they are incomplete. */
export function keystoneSettings(options: KeystoneOptions): KeystoneSettings {
  const { keystoneUrl, keystonePassword } = options;
  if (keystoneUrl === null || keystonePassword === null) throw new SettingsError(keystoneFaults(options));
  return {
    ...DEFAULT_KEYSTONE_SETTINGS,
    url: keystoneUrl,
    user: options.keystoneUser,
    password: keystonePassword,
    project: options.keystoneProject,
    userDomain: options.keystoneUserDomain,
    projectDomain: options.keystoneProjectDomain,
    cacheTtlMs: options.keystoneCacheTtl,
  };
}
