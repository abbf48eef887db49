import { idOf } from "./user-directory.ts";

export const REGION = "RegionOne";

/** The services of the catalog, with the path of each. */
const SERVICES = [
  { type: "identity", name: "keystone", path: "/identity" },
  { type: "compute", name: "nova", path: "/compute/v2.1" },
  { type: "placement", name: "placement", path: "/placement" },
  { type: "image", name: "glance", path: "/image" },
  { type: "network", name: "neutron", path: "/network" },
  { type: "volumev3", name: "cinderv3", path: "/volume/v3" },
  { type: "block-storage", name: "cinder", path: "/volume/v3" },
] as const;
const INTERFACES = ["public", "internal", "admin"] as const;

export interface CatalogEntry {
  readonly id: string;
  readonly type: string;
  readonly name: string;
  readonly endpoints: readonly {
    readonly id: string;
    readonly interface: string;
    readonly region: string;
    readonly region_id: string;
    readonly url: string;
  }[];
}

/** Returns the catalog of an api that is reached at `base`, for example `http://127.0.0.1:8774`. */
export function catalogView(base: string): CatalogEntry[] {
  return SERVICES.map(({ type, name, path }) => ({
    id: idOf("service", type),
    type,
    name,
    endpoints: INTERFACES.map((one) => ({
      id: idOf("endpoint", `${type} ${one}`),
      interface: one,
      region: REGION,
      region_id: REGION,
      url: base + path,
    })),
  }));
}
