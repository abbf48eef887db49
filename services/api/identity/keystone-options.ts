import type { ServiceCredentials } from "../../../adapters/openstack/keystone-session.ts";
import { duration, type Kind, text, url } from "../../../runtime/setting-kinds.ts";
import { optional, SettingsError, setting, type ValuesOf } from "../../../runtime/settings.ts";
import { DEFAULT_KEYSTONE_SETTINGS, type KeystoneSettings } from "./keystone-settings.ts";

const secretText: Kind<string> = { ...text(), secret: true };

/** The settings for authenticating callers by Keystone. Spread them into a declaration. */
export const keystoneOptions = {
  keystoneUrl: optional(url("http", "https"), {
    about: "URL of Keystone, like http://keystone:5000/v3; for --auth keystone",
  }),
  keystoneUser: setting(text(), { about: "the user that validates tokens", default: "placement" }),
  keystonePassword: optional(secretText, { about: "that user's password; give it in the environment or in a file" }),
  keystoneProject: setting(text(), { about: "that user's project", default: "service" }),
  keystoneUserDomain: setting(text(), {
    about: "the user's domain",
    default: "Default",
  }),
  keystoneProjectDomain: setting(text(), {
    about: "the project's domain",
    default: "Default",
  }),
  keystoneApplicationCredentialId: optional(text(), {
    about: "id of an application credential, with which this service logs in instead of a user and password",
  }),
  keystoneApplicationCredentialSecret: optional(secretText, {
    about: "secret of the application credential; give it in the environment or in a file",
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
export function keystoneFaults(options: KeystoneOptions): readonly string[] {
  const { keystoneApplicationCredentialId: id, keystoneApplicationCredentialSecret: secret } = options;
  const faults = options.keystoneUrl === null ? [missing("BERTH_KEYSTONE_URL (--keystone-url)")] : [];
  if (id === null && secret === null) {
    if (options.keystonePassword === null) faults.push(missing("BERTH_KEYSTONE_PASSWORD (--keystone-password)"));
  } else if (id === null || secret === null) {
    const name = id === null ? "ID (--keystone-application-credential-id)" : "SECRET";
    faults.push(
      `BERTH_KEYSTONE_APPLICATION_CREDENTIAL_${name} is missing: an application credential has an id and a secret`,
    );
  }
  return faults;
}

const missing = (name: string): string => `${name} is missing: --auth keystone needs it`;

/** The settings in the form that the authenticator needs. Throws `SettingsError` when they are incomplete. */
export function keystoneSettings(options: KeystoneOptions): KeystoneSettings {
  const faults = keystoneFaults(options);
  if (options.keystoneUrl === null || faults.length > 0) throw new SettingsError(faults);
  return {
    ...DEFAULT_KEYSTONE_SETTINGS,
    url: options.keystoneUrl,
    credentials: credentialsOf(options),
    cacheTtlMs: options.keystoneCacheTtl,
  };
}

function credentialsOf(options: KeystoneOptions): ServiceCredentials {
  const { keystoneApplicationCredentialId: id, keystoneApplicationCredentialSecret: secret } = options;
  if (id !== null && secret !== null) return { kind: "application-credential", id, secret };
  return {
    kind: "password",
    user: options.keystoneUser,
    password: options.keystonePassword ?? "",
    project: options.keystoneProject,
    userDomain: options.keystoneUserDomain,
    projectDomain: options.keystoneProjectDomain,
  };
}
