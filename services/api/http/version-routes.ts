import type { FastifyRequest } from "fastify";
import { Type } from "typebox";
import { urlBaseOf } from "./compute-urls.ts";
import type { Http } from "./create-http.ts";
import { notFound } from "./fault.ts";
import { type Place, placeOf } from "./links.ts";
import { MINOR_MAX, MINOR_MIN } from "./microversion.ts";

const Version = Type.Object({
  id: Type.String(),
  status: Type.String(),
  version: Type.String(),
  min_version: Type.String(),
  updated: Type.String(),
  links: Type.Array(Type.Object({ rel: Type.String(), href: Type.String(), type: Type.Optional(Type.String()) })),
  "media-types": Type.Optional(Type.Array(Type.Object({ base: Type.String(), type: Type.String() }))),
});
const OneVersion = { response: { 200: Type.Object({ version: Version }) } };

/** The versions of the Compute API. The legacy one, without microversions, answers as the oldest microversion does. */
const VERSIONS = {
  "v2.0": { status: "DEPRECATED", version: "", min_version: "", updated: "2025-07-04T12:00:00Z", mediaVersion: "2" },
  "v2.1": {
    status: "CURRENT",
    version: `2.${MINOR_MAX}`,
    min_version: `2.${MINOR_MIN}`,
    updated: "2013-07-23T11:33:21Z",
    mediaVersion: "2.1",
  },
} as const;
type VersionId = keyof typeof VERSIONS;

function versionView(id: VersionId, place: Place) {
  const { mediaVersion: _, ...shown } = VERSIONS[id];
  return { id, ...shown, links: [{ rel: "self", href: `${place.versioned}/` }] };
}

function wholeVersionView(id: VersionId, place: Place) {
  const view = versionView(id, place);
  const documentation = { rel: "describedby", type: "text/html", href: "http://docs.openstack.org/" };
  const type = `application/vnd.openstack.compute+json;version=${VERSIONS[id].mediaVersion}`;
  return { ...view, links: [...view.links, documentation], "media-types": [{ base: "application/json", type }] };
}

/** Registers `/` and `/compute`, which list the versions without authentication. */
export function registerVersionList(http: Http, publicUrl: string | null): void {
  for (const [path, parent] of [
    ["/", ""],
    ["/compute", "/compute"],
  ] as const) {
    http.get(
      path,
      { schema: { response: { 200: Type.Object({ versions: Type.Array(Version) }) } } },
      async (request) => ({
        versions: [
          versionView("v2.0", placeOf(request, `${parent}/v2`, publicUrl)),
          versionView("v2.1", placeOf(request, `${parent}/v2.1`, publicUrl)),
        ],
      }),
    );
  }
}

/** Registers `/v2.1/` (and thus `/v2/`), which describes this version without authentication, and `/versions/{id}`. */
export function registerVersion(http: Http, prefix: string, publicUrl: string | null): void {
  const spoken = (request: FastifyRequest): VersionId => (urlBaseOf(request, prefix).isLegacy ? "v2.0" : "v2.1");

  http.get("/", { config: { public: true }, schema: OneVersion }, async (request) => ({
    version: wholeVersionView(spoken(request), placeOf(request, prefix, publicUrl)),
  }));

  const withId = { ...OneVersion, params: Type.Object({ id: Type.String() }) };
  http.get("/versions/:id", { config: { rule: null }, schema: withId }, async (request) => {
    const id = urlBaseOf(request, prefix).isLegacy ? "v2.0" : request.params.id;
    if (!isVersion(id)) throw notFound("The resource could not be found.");
    return { version: wholeVersionView(id, placeOf(request, prefix, publicUrl)) };
  });
}

function isVersion(id: string): id is VersionId {
  return Object.hasOwn(VERSIONS, id);
}
