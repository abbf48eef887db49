import { systemClock } from "../../../runtime/clock.ts";
import type { Logger } from "../../../runtime/logger.ts";
import type { Policy } from "./policy.ts";
import { PolicyFile } from "./policy-file.ts";

/** Returns the file of a policy's overrides. Once started, it is followed, and the log says what comes of each change. */
export function followPolicy(path: string, policy: Policy, logger: Logger): PolicyFile {
  return new PolicyFile({
    path,
    policy,
    clock: systemClock,
    events: {
      policyLoaded: (loaded, overrides) =>
        logger.info({ path: loaded, overrides }, "the rules of the policy file are in force"),
      policyRefused: (refused, reason) =>
        logger.error(
          { path: refused, reason },
          "the policy file is refused, and the previous rules stay in force: correct the file",
        ),
      policyDoubted: (doubted, doubt) =>
        logger.warn(
          { path: doubted, doubt },
          "the policy file probably contains a mistake: compare it with the documented rules",
        ),
    },
  });
}
