import { Type } from "typebox";
import type { Http } from "./create-http.ts";
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

function versionView(place: Place) {
  return {
    id: "v2.1",
    status: "CURRENT",
    version: `2.${MINOR_MAX}`,
    min_version: `2.${MINOR_MIN}`,
    updated: "2013-07-23T11:33:21Z",
    links: [{ rel: "self", href: `${place.versioned}/` }],
  };
}

/** Registers `/` and `/compute`, which list the versions without authentication. */
export function registerVersionList(http: Http, publicUrl: string | null): void {
  for (const [path, prefix] of [
    ["/", "/v2.1"],
    ["/compute", "/compute/v2.1"],
  ] as const) {
    http.get(
      path,
      { schema: { response: { 200: Type.Object({ versions: Type.Array(Version) }) } } },
      async (request) => ({
        versions: [versionView(placeOf(request, prefix, publicUrl))],
      }),
    );
  }
}

/** Registers `/v2.1/`, which describes this version without authentication. */
export function registerVersion(http: Http, prefix: string, publicUrl: string | null): void {
  http.get(
    "/",
    { config: { public: true }, schema: { response: { 200: Type.Object({ version: Version }) } } },
    async (request) => ({
      version: {
        ...versionView(placeOf(request, prefix, publicUrl)),
        "media-types": [{ base: "application/json", type: "application/vnd.openstack.compute+json;version=2.1" }],
      },
    }),
  );
}
