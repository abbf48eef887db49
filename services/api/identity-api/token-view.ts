import type { CatalogEntry } from "./catalog-view.ts";
import { DEFAULT_DOMAIN } from "./default-domain.ts";
import type { IssuedToken } from "./token-book.ts";
import type { Named, UserDirectory } from "./user-directory.ts";

const isoMicroseconds = (atMs: number): string => new Date(atMs).toISOString().replace("Z", "000Z");

/** Returns a token as the Identity API shows it. An unscoped token has no catalog and no roles. */
export function tokenView(
  issued: IssuedToken,
  directory: UserDirectory,
  catalog: readonly CatalogEntry[] | null,
): Record<string, unknown> {
  const user = directory.user({ id: issued.userId });
  const project = issued.projectId === null ? null : directory.project({ id: issued.projectId });
  return {
    methods: issued.methods,
    user: { ...inDomain(user), password_expires_at: null },
    audit_ids: [issued.auditId],
    expires_at: isoMicroseconds(issued.expiresAtMs),
    issued_at: isoMicroseconds(issued.issuedAtMs),
    ...(project !== null && {
      project: inDomain(project),
      is_domain: false,
      roles: directory.roles.filter(({ name }) => (issued.roles as readonly string[]).includes(name)),
      ...(catalog !== null && { catalog }),
    }),
  };
}

const inDomain = (named: Named | null) => ({ id: named?.id, name: named?.name, domain: DEFAULT_DOMAIN });
