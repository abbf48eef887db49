import type { FastifyRequest } from "fastify";
import { urlBaseOf } from "./compute-urls.ts";

export interface ResourceLink {
  readonly rel: string;
  readonly href: string;
}

/** The base URLs of this API as its caller reaches it. */
export interface Place {
  /** `http://host:port/v2.1`, without a slash at its end, and with the project's id if the caller's URL has it. */
  readonly versioned: string;
  /** The URL without the version, which Nova uses in `bookmark` links. */
  readonly unversioned: string;
}

/**
 * Returns the base of links in an answer: `publicUrl` if it is set (a proxy may hide the address that the caller used), else the host that
 * the request names. `prefix` is the path of the API: `/v2.1` or `/compute/v2.1`.
 */
export function placeOf(request: FastifyRequest, prefix: string, publicUrl: string | null): Place {
  const { path, project } = urlBaseOf(request, prefix);
  const versioned = `${publicUrl ?? `${request.protocol}://${request.host}`}${path}`;
  const tail = project === null ? "" : `/${project}`;
  const version = versioned.slice(0, versioned.length - tail.length);
  return { versioned, unversioned: version.slice(0, version.lastIndexOf("/")) + tail };
}

export function resourceLinks(place: Place, collection: string, id: string): ResourceLink[] {
  const tail = `/${collection}/${encodeURIComponent(id)}`;
  return [
    { rel: "self", href: place.versioned + tail },
    { rel: "bookmark", href: place.unversioned + tail },
  ];
}

export function bookmark(place: Place, collection: string, id: string): ResourceLink {
  return { rel: "bookmark", href: `${place.unversioned}/${collection}/${encodeURIComponent(id)}` };
}

/** Returns the link to the next page, which is the same query from `marker` on. */
export function nextLink(
  place: Place,
  path: string,
  query: Readonly<Record<string, unknown>>,
  page: { readonly marker: string; readonly limit: number },
): ResourceLink {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (name === "marker" || name === "limit") continue;
    for (const one of Array.isArray(value) ? value : [value]) parameters.append(name, String(one));
  }
  parameters.set("limit", String(page.limit));
  parameters.set("marker", page.marker);
  return { rel: "next", href: `${place.versioned}/${path}?${parameters}` };
}
