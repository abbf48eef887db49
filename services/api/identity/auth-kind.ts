/** How callers are authenticated: not at all (all are administrators), by trusting the token's text, or by asking Keystone. */
export const AUTH_KINDS = ["none", "noauth2", "keystone"] as const;
export type AuthKind = (typeof AUTH_KINDS)[number];
