import type { IncomingHttpHeaders } from "node:http";

/** The range of supported microversions 2.x of the Compute API, by minor number. */
export const MINOR_MIN = 1;
export const MINOR_MAX = 104;

export const VERSION_HEADER = "openstack-api-version";
export const VERSION_HEADER_LEGACY = "x-openstack-nova-api-version";
export const VARY = "OpenStack-API-Version, X-OpenStack-Nova-API-Version";

export type MicroversionOutcome =
  | { readonly kind: "spoken"; readonly minor: number }
  | { readonly kind: "malformed"; readonly text: string }
  | { readonly kind: "not-spoken"; readonly text: string };

/**
 * Returns the microversion that a call asks for: `OpenStack-API-Version: compute 2.61` (a list for several services is allowed), else
 * `X-OpenStack-Nova-API-Version: 2.61`, else the oldest. `latest` is the newest supported one.
 *
 * Source: Nova's api-guide, "Microversions".
 */
export function readMicroversion(headers: IncomingHttpHeaders): MicroversionOutcome {
  const asked = askedVersion(headers);
  if (asked === null) return { kind: "spoken", minor: MINOR_MIN };
  if (asked === "latest") return { kind: "spoken", minor: MINOR_MAX };
  const match = /^([1-9]\d{0,5})\.([1-9]\d{0,5}|0)$/.exec(asked);
  if (match === null) return { kind: "malformed", text: asked.slice(0, 50) };
  const minor = Number(match[2]);
  if (match[1] !== "2" || minor < MINOR_MIN || minor > MINOR_MAX) return { kind: "not-spoken", text: asked };
  return { kind: "spoken", minor };
}

function askedVersion(headers: IncomingHttpHeaders): string | null {
  const current = headers[VERSION_HEADER];
  if (current !== undefined) {
    for (const part of String(current).split(",")) {
      const [service, version] = part.trim().split(/\s+/);
      if (service?.toLowerCase() === "compute" && version !== undefined) return version.toLowerCase();
    }
  }
  const legacy = headers[VERSION_HEADER_LEGACY];
  return legacy === undefined ? null : String(legacy).trim().toLowerCase();
}

interface VersionHeaders {
  readonly current: string;
  readonly legacy: string;
}
const spoken: readonly VersionHeaders[] = Array.from({ length: MINOR_MAX + 1 }, (_, minor) => ({
  current: `compute 2.${minor}`,
  legacy: `2.${minor}`,
}));

/** Returns the headers that tell a client which microversion its answer has. */
export function versionHeaders(minor: number): VersionHeaders {
  const headers = spoken[minor];
  if (headers === undefined) throw new RangeError(`microversion 2.${minor} is not supported`);
  return headers;
}
