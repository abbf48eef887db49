import type { Logger } from "../../../runtime/logger.ts";
import type { ValuesOf } from "../../../runtime/settings.ts";
import type { DeployedAuthKind } from "../identity/auth-kind.ts";
import type { KeystoneAuthenticator } from "../identity/keystone-authenticator.ts";
import { openKeystone } from "../identity/open-keystone.ts";
import { followPolicy } from "../policy/follow-policy.ts";
import { Policy } from "../policy/policy.ts";
import { Cors } from "./cors.ts";
import { type Authenticate, authenticateByKeystone, authenticateNoauth2, authenticateNobody } from "./identity.ts";
import { legacyDefaults, secureDefaults } from "./placement-rules.ts";
import { corsSettings, type placementApiSettings } from "./settings.ts";

/** The permissions of callers of the Placement API, and the origins from which browsers may call. */
export interface PlacementAccess {
  readonly authenticate: Authenticate;
  /** The Keystone authenticator for other APIs of this process, or null when Keystone is not used. */
  readonly keystone: KeystoneAuthenticator["authenticate"] | null;
  /** Asks Keystone about projects, or null when Keystone is not used. */
  readonly isUnknownProject: KeystoneAuthenticator["isUnknownProject"] | null;
  readonly policy: Policy;
  readonly cors: Cors | null;
  close(): Promise<void>;
}

type AccessOptions = ValuesOf<typeof placementApiSettings> & { readonly auth: DeployedAuthKind };

/** Reads the policy file, if there is one, and follows it until `close`. Throws when it is broken. */
export async function openAccess(options: AccessOptions, logger: Logger): Promise<PlacementAccess> {
  const policy = new Policy(options.enforceNewDefaults ? secureDefaults() : legacyDefaults());
  const file = options.policyFile === null ? null : followPolicy(options.policyFile, policy, logger);
  const cors = corsSettings(options);
  const { authenticate, keystone, isUnknownProject, close } = openAuthenticate(options, logger);
  try {
    await file?.start();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    authenticate,
    keystone,
    isUnknownProject,
    policy,
    cors: cors === null ? null : new Cors(cors),
    close: async () => {
      await close();
      await file?.close();
    },
  };
}

function openAuthenticate(
  options: AccessOptions,
  logger: Logger,
): Pick<PlacementAccess, "authenticate" | "keystone" | "isUnknownProject" | "close"> {
  const nothing = async () => {};
  switch (options.auth) {
    case "none":
      return { authenticate: authenticateNobody, keystone: null, isUnknownProject: null, close: nothing };
    case "noauth2":
      return { authenticate: authenticateNoauth2, keystone: null, isUnknownProject: null, close: nothing };
    case "keystone":
      return openByKeystone(options, logger);
    default:
      return options.auth satisfies never;
  }
}

function openByKeystone(options: AccessOptions, logger: Logger) {
  const { authenticate, isUnknownProject, close } = openKeystone(options, logger);
  return { authenticate: authenticateByKeystone(authenticate), keystone: authenticate, isUnknownProject, close };
}
