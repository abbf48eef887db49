import { RedisSharedCache } from "../../../../adapters/redis/redis-shared-cache.ts";
import { systemClock } from "../../../../runtime/clock.ts";
import type { Logger } from "../../../../runtime/logger.ts";
import { duration, type Kind, text, url } from "../../../../runtime/setting-kinds.ts";
import { optional, SettingsError, setting, type ValuesOf } from "../../../../runtime/settings.ts";
import type { Authenticate } from "../identity.ts";
import { DEFAULT_KEYSTONE_SETTINGS, KeystoneAuthenticator, type KeystoneSettings } from "../keystone.ts";

const password: Kind<string> = { ...text(), secret: true };

/** What knowing callers by Keystone takes; spread it into a declaration. */
export const keystoneOptions = {
  keystoneUrl: optional(url("http", "https"), { about: "Keystone, like http://keystone:5000/v3; for --auth keystone" }),
  keystoneUser: setting(text(), { about: "the user by which tokens are looked at", default: "placement" }),
  keystonePassword: optional(password, { about: "that user's password; better given in the environment" }),
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
    about: "how long a token is believed without asking again",
    default: "300s",
  }),
  tokenCacheUrl: optional(url("redis", "rediss"), { about: "Redis in which processes share what they know of tokens" }),
};

/** Knows callers by Keystone until `close`. Throws `SettingsError` when the settings do not suffice; asks nothing yet. */
export function openKeystone(
  options: ValuesOf<typeof keystoneOptions>,
  logger: Logger,
): { readonly authenticate: Authenticate; close(): Promise<void> } {
  const settings = keystoneSettings(options);
  const shared =
    options.tokenCacheUrl === null
      ? null
      : new RedisSharedCache({ url: options.tokenCacheUrl, prefix: "berth:token:" });
  const authenticator = new KeystoneAuthenticator(
    {
      clock: systemClock,
      shared,
      onLost: (error) => logger.error({ code: error.code, reason: error.message }, "tokens cannot be looked at"),
      onBack: () => logger.info("tokens can be looked at again"),
    },
    settings,
  );
  return {
    authenticate: authenticator.authenticate,
    close: async () => {
      await authenticator.close();
      await shared?.close();
    },
  };
}

function keystoneSettings(options: ValuesOf<typeof keystoneOptions>): KeystoneSettings {
  const { keystoneUrl, keystonePassword } = options;
  if (keystoneUrl === null)
    throw new SettingsError("BERTH_KEYSTONE_URL (--keystone-url) is missing: --auth keystone needs it");
  if (keystonePassword === null)
    throw new SettingsError("BERTH_KEYSTONE_PASSWORD (--keystone-password) is missing: --auth keystone needs it");
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
