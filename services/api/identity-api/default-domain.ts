/** The only domain. Its id and its name are those of a Keystone that was bootstrapped. */
export const DEFAULT_DOMAIN = { id: "default", name: "Default" } as const;

/** Whether this names the only domain. A missing one means it, too. */
export function isDefaultDomain(domain: { readonly id?: string; readonly name?: string } | undefined): boolean {
  if (domain === undefined) return true;
  if (domain.id !== undefined) return domain.id === DEFAULT_DOMAIN.id;
  return domain.name === undefined || domain.name === DEFAULT_DOMAIN.name;
}
