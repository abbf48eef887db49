import type { Http } from "./create-http.ts";
import { placeOf } from "./links.ts";

/**
 * Registers the version of a served part of another OpenStack API at the root of that API, which clients read before they call it, without
 * authentication. `status` is the status of the answer, for example Glance's 300.
 */
export function registerNeighbourVersion(
  http: Http,
  version: {
    readonly prefix: string;
    readonly id: string;
    readonly path: string;
    readonly status: number;
    readonly publicUrl: string | null;
  },
): void {
  http.get("/", { config: { public: true } }, async (request, reply) => {
    const { versioned } = placeOf(request, version.prefix, version.publicUrl);
    reply.code(version.status);
    const links = [{ rel: "self", href: `${versioned}${version.path}` }];
    return { versions: [{ id: version.id, status: "CURRENT", links }] };
  });
}
