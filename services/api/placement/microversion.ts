import { PlacementError } from "./placement-error.ts";

export const MIN_MINOR = 0;
export const MAX_MINOR = 39;

/** A negotiated version. The major is always 1; versions differ only in the minor. */
export class Microversion {
  readonly minor: number;
  constructor(minor: number) {
    this.minor = minor;
  }
  /** True from `1.minor` on. */
  has(minor: number): boolean {
    return this.minor >= minor;
  }
  toString(): string {
    return `1.${this.minor}`;
  }
}

const HEADER = "openstack-api-version";

/**
 * Reads the version from the header `OpenStack-API-Version: placement 1.N | latest`; 1.0 without one. Entries of other services in the
 * comma-separated header are skipped. Of several entries for this service the last counts.
 *
 * Throws 400 for an invalid version, 406 for one that is not offered.
 *
 * Source: https://specs.openstack.org/openstack/api-sig/guidelines/microversion_specification.html
 */
export function negotiate(headers: Readonly<Record<string, string | undefined>>): Microversion {
  const header = headers[HEADER] ?? "";
  // A fast path for the header that nearly all clients send.
  const plain = /^placement 1\.([0-9]{1,2})$/.exec(header);
  if (plain !== null && Number(plain[1]) <= MAX_MINOR) return new Microversion(Number(plain[1]));
  const wanted = header
    .split(",")
    .map((entry) => entry.trim().split(/\s+/))
    .filter(([service]) => service?.toLowerCase() === "placement")
    .at(-1);
  if (wanted === undefined) return new Microversion(MIN_MINOR);
  const text = wanted.length === 2 ? (wanted[1] ?? "") : "";
  if (text.toLowerCase() === "latest") return new Microversion(MAX_MINOR);
  const match = /^(\d+)\.(\d+)$/.exec(text);
  if (!match)
    throw new PlacementError(
      400,
      `Invalid microversion: invalid version string: ${wanted.slice(1).join(" ")}; use 1.0 to 1.${MAX_MINOR}, or latest`,
    );
  const [major, minor] = [Number(match[1]), Number(match[2])];
  if (major !== 1 || minor > MAX_MINOR) {
    throw new PlacementError(
      406,
      `Invalid microversion: Unacceptable version header: ${text}; 1.0 to 1.${MAX_MINOR} are offered`,
    );
  }
  return new Microversion(minor);
}
