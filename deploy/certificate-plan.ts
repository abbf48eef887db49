import { conductorNames, HUB_SERVERS } from "./cell-names.ts";

/** A certificate authority, and who gets a certificate of it. Files are named after both. */
export interface AuthorityPlan {
  readonly name: string;
  readonly members: readonly MemberPlan[];
}

export interface MemberPlan {
  /** What its files are called after; no other member's of any authority are. */
  readonly name: string;
  /** The host name or address that its certificate is good for. */
  readonly host: string;
}

/** Two certificates would have to lie in one file. */
export class SameFileError extends Error {
  constructor(file: string) {
    super(`two certificates would be called ${file}: give cells and hosts other names`);
    this.name = "SameFileError";
  }
}

/**
 * Who needs a certificate: the servers of the API tier from an authority of its own, and from each cell's own its servers, conductors
 * and agents; no cell's certificate is worth anything above it or in another cell. `more`: further host names or addresses, for
 * which every cell's authority issues one, too, called after both. Throws `SameFileError`.
 */
export function certificatePlan(cells: readonly string[], more: readonly string[] = []): readonly AuthorityPlan[] {
  const plan = [
    { name: "above", members: ["postgres", "redis", ...HUB_SERVERS].map(itself) },
    ...cells.map((cell) => ({
      name: cell,
      members: [
        ...[`${cell}-postgres`, `${cell}-nats`, ...conductorNames(cell), `${cell}-agent`].map(itself),
        ...more.map((host) => ({ name: `${cell}-${host}`, host })),
      ],
    })),
  ];
  const files = new Set<string>();
  for (const { certificate, key } of plan.flatMap(({ name, members }) => [
    authorityFiles(name),
    ...members.map((member) => certificateFiles(member.name)),
  ])) {
    for (const file of [certificate, key]) {
      if (files.has(file)) throw new SameFileError(file);
      files.add(file);
    }
  }
  return plan;
}

const itself = (host: string): MemberPlan => ({ name: host, host });

/** What the files of an authority, or of a member with its certificate, are called. */
export function certificateFiles(name: string): { readonly certificate: string; readonly key: string } {
  return { certificate: `${name}.pem`, key: `${name}-key.pem` };
}

/** The name of an authority's own files. */
export function authorityFiles(name: string): { readonly certificate: string; readonly key: string } {
  return certificateFiles(`${name}-ca`);
}
