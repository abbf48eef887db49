/** How callers are known: not at all (all are administrators), by believing the token, by asking Keystone. */
export const AUTH_KINDS = ["none", "noauth2", "keystone"] as const;
export type AuthKind = (typeof AUTH_KINDS)[number];
