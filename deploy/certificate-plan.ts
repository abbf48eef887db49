import { conductorNames, HUB_SERVERS } from "./cell-names.ts";

/** A certificate authority, and who gets a certificate of it. Files are named after both. */
export interface AuthorityPlan {
  readonly name: string;
  readonly members: readonly string[];
}

/**
 * Who needs a certificate: the servers of the API tier from an authority of its own, and from each cell's own its servers, conductors
 * and agents; no cell's certificate is worth anything above it or in another cell. `more`: further host names or addresses, for
 * which every cell's authority issues one, too.
 */
export function certificatePlan(cells: readonly string[], more: readonly string[] = []): readonly AuthorityPlan[] {
  return [
    { name: "above", members: ["postgres", "redis", ...HUB_SERVERS] },
    ...cells.map((cell) => ({
      name: cell,
      members: [`${cell}-postgres`, `${cell}-nats`, ...conductorNames(cell), `${cell}-agent`, ...more],
    })),
  ];
}

/** What the files of an authority, or of a member with its certificate, are called. */
export function certificateFiles(name: string): { readonly certificate: string; readonly key: string } {
  return { certificate: `${name}.pem`, key: `${name}-key.pem` };
}

/** The name of an authority's own files. */
export function authorityFiles(name: string): { readonly certificate: string; readonly key: string } {
  return certificateFiles(`${name}-ca`);
}
