import type { FastifyRequest } from "fastify";
import type { KnownPaths } from "./known-paths.ts";

/** The ids of projects as URLs may have them. Keystone's are 32 hexadecimal digits; those of other kinds of authentication are any names. */
const PROJECT = /^[A-Za-z0-9._@-]{1,255}$/;
/** A project's id at the end of a URL, as in the URLs of a catalog. It has a form that no name of a collection has. */
const PROJECT_ALONE = /^[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}$/;
const VERSION_END = /\/v2\.1$/;
/**
 * The other name of `/servers` with which gophercloud, and so Terraform, and old novaclients create servers that boot from volumes, with its seven
 * routes. Source: Nova's `routes.py`, and its `VolumesBootController`.
 */
const BOOT_COLLECTION = "os-volumes_boot";
const BOOT_ROUTES = /^\/os-volumes_boot(?=(?:\/detail|\/[^/?]+(?:\/action)?)?\/?(?:\?|$))/;
const SERVERS = "/servers";
/** The last microversion that has it. */
const BOOT_UNTIL_MINOR = 102;

/**
 * Translates the URLs of old clients and catalogs, so that each route is registered once: `/v2.1/{project}/servers`, `/v2/servers` and
 * `/v2.1/os-volumes_boot` are served by the route `/v2.1/servers`.
 */
export class ComputeUrls {
  readonly #paths: KnownPaths;
  /** Each prefix of the API, with the prefix that the routes have. */
  readonly #prefixes: readonly (readonly [asked: string, served: string])[];

  constructor(prefixes: readonly string[], paths: KnownPaths) {
    this.#paths = paths;
    this.#prefixes = prefixes.flatMap((prefix): (readonly [string, string])[] =>
      VERSION_END.test(prefix)
        ? [
            [prefix, prefix],
            [legacyPrefix(prefix), prefix],
          ]
        : [[prefix, prefix]],
    );
  }

  /** Returns the URL of the route that serves a URL, or the URL itself. Cost: a look at the path's first segment for most URLs. */
  routed(url: string): string {
    for (const [asked, served] of this.#prefixes) {
      if (!url.startsWith(asked)) continue;
      const rest = url.slice(asked.length);
      if (rest === "" || rest.startsWith("?")) return served + rest;
      if (rest.startsWith("/")) return served + this.#withoutProject(rest, served).replace(BOOT_ROUTES, SERVERS);
    }
    return url;
  }

  #withoutProject(rest: string, prefix: string): string {
    const [, first = "", tail = "", second = ""] = /^\/([^/?]*)((?:\/([^/?]*))?.*)$/.exec(rest) ?? [];
    const collections = this.#paths.firstSegments(prefix);
    const isCollection = (name: string) => collections.has(name) || name === BOOT_COLLECTION;
    if (first === "" || isCollection(first)) return rest;
    const isProject = second === "" ? PROJECT_ALONE.test(first) : isCollection(second) && PROJECT.test(first);
    return isProject ? tail : rest;
  }
}

function legacyPrefix(prefix: string): string {
  return prefix.replace(VERSION_END, "/v2");
}

/** The part of a URL that names the API, as the caller wrote it. */
export interface UrlBase {
  /** Such as `/v2.1`, `/v2.1/{project}` or `/compute/v2`. */
  readonly path: string;
  /** The project that the URL names. */
  readonly project: string | null;
  /** The URL is one of `/v2`, the API before microversions. */
  readonly isLegacy: boolean;
  /** The last microversion that has the URL's name of its collection; null for those without an end of their own. */
  readonly untilMinor: number | null;
}

/** Returns the base of a call's URL, for a route below `prefix`. */
export function urlBaseOf({ originalUrl, url }: Pick<FastifyRequest, "originalUrl" | "url">, prefix: string): UrlBase {
  if (originalUrl === url) return { path: prefix, project: null, isLegacy: false, untilMinor: null };
  const served = url.slice(prefix.length);
  const isBoot = served.startsWith(SERVERS) && !originalUrl.endsWith(served);
  const asked = isBoot ? `/${BOOT_COLLECTION}${served.slice(SERVERS.length)}` : served;
  const path = originalUrl.slice(0, originalUrl.length - asked.length);
  const legacy = legacyPrefix(prefix);
  const isLegacy = legacy !== prefix && path !== prefix && !path.startsWith(`${prefix}/`);
  const project = path.slice((isLegacy ? legacy : prefix).length + 1);
  return { path, project: project === "" ? null : project, isLegacy, untilMinor: isBoot ? BOOT_UNTIL_MINOR : null };
}
