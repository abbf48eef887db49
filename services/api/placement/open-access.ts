import { systemClock } from "../../../runtime/clock.ts";
import type { Logger } from "../../../runtime/logger.ts";
import type { ValuesOf } from "../../../runtime/settings.ts";
import { Cors } from "./cors.ts";
import { type Authenticate, authenticateNoauth2, authenticateNobody } from "./identity.ts";
import { Policy } from "./policy/policy.ts";
import { PolicyFile } from "./policy/policy-file.ts";
import { corsSettings, type PLACEMENT_AUTH_KINDS, type placementApiSettings } from "./settings.ts";

/** Who may do what over the Placement API, from where. */
export interface PlacementAccess {
  readonly authenticate: Authenticate;
  readonly policy: Policy;
  readonly cors: Cors | null;
  close(): Promise<void>;
}

type AccessOptions = ValuesOf<typeof placementApiSettings> & { readonly auth: (typeof PLACEMENT_AUTH_KINDS)[number] };

/** Reads the policy file, if there is one, and follows it until `close`. Throws when it is broken. */
export async function openAccess(options: AccessOptions, logger: Logger): Promise<PlacementAccess> {
  const policy = new Policy(options.enforceNewDefaults ? "secure" : "legacy");
  const file = options.policyFile === null ? null : followPolicy(options.policyFile, policy, logger);
  await file?.start();
  const cors = corsSettings(options);
  return {
    authenticate: options.auth === "noauth2" ? authenticateNoauth2 : authenticateNobody,
    policy,
    cors: cors === null ? null : new Cors(cors),
    close: async () => {
      await file?.close();
    },
  };
}

function followPolicy(path: string, policy: Policy, logger: Logger): PolicyFile {
  return new PolicyFile({
    path,
    policy,
    clock: systemClock,
    events: {
      policyLoaded: (loaded, overrides) => logger.info({ path: loaded, overrides }, "policy file in force"),
      policyRefused: (refused, reason) =>
        logger.error({ path: refused, reason }, "policy file refused; the old rules stay in force"),
      policyDoubted: (doubted, doubt) => logger.warn({ path: doubted, doubt }, "policy file looks like a mistake"),
    },
  });
}
