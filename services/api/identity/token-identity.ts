import type { AccessRule } from "./access-rules.ts";

/** The caller that a checked token identifies. */
export interface TokenIdentity {
  readonly userId: string | null;
  readonly projectId: string | null;
  /** `all` for a token of system scope. */
  readonly systemScope: string | null;
  /** Set for a token of domain scope. */
  readonly domainId?: string | null;
  readonly roles: readonly string[];
  /** The only calls for which the token may be used; left out or null for all calls. */
  readonly accessRules?: readonly AccessRule[] | null;
  /** Whether the rule `context_is_admin` of the Compute API admits the caller. Left out where nothing asks. */
  readonly isAdmin?: boolean;
}
