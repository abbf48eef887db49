/** How the callers of a deployed api are known: not at all (all are admins), by trusting the token's text, or by asking Keystone. */
export const AUTH_KINDS = ["none", "noauth2", "keystone"] as const;

/** How the callers of a trial cloud are known. It can also know its users by itself, with tokens that live in its one process. */
export const TRIAL_AUTH_KINDS = [...AUTH_KINDS, "password"] as const;

export type DeployedAuthKind = (typeof AUTH_KINDS)[number];
export type AuthKind = (typeof TRIAL_AUTH_KINDS)[number];
