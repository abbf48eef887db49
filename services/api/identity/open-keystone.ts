import { RedisSharedCache } from "../../../adapters/redis/redis-shared-cache.ts";
import { systemClock } from "../../../runtime/clock.ts";
import type { Logger } from "../../../runtime/logger.ts";
import { KeystoneAuthenticator } from "./keystone-authenticator.ts";
import { type KeystoneOptions, keystoneSettings } from "./keystone-options.ts";

/** Authenticates callers by Keystone until `close`. Throws `SettingsError` when the settings are incomplete. Sends no request yet. */
export function openKeystone(
  options: KeystoneOptions,
  logger: Logger,
): Pick<KeystoneAuthenticator, "authenticate" | "isUnknownProject" | "close"> {
  const settings = keystoneSettings(options);
  const shared =
    options.tokenCacheUrl === null
      ? null
      : new RedisSharedCache({ url: options.tokenCacheUrl, prefix: "berth:token:" });
  const authenticator = new KeystoneAuthenticator(
    {
      clock: systemClock,
      shared,
      onLost: (error) =>
        logger.error(
          { code: error.code, reason: error.message },
          "tokens cannot be validated, so requests are refused: see that Keystone answers and accepts the credentials of this service",
        ),
      onBack: () => logger.info("tokens can be validated again"),
    },
    settings,
  );
  return {
    authenticate: authenticator.authenticate,
    isUnknownProject: authenticator.isUnknownProject,
    close: async () => {
      await authenticator.close();
      await shared?.close();
    },
  };
}
