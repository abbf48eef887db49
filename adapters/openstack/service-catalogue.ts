import { withoutTrailing } from "../../core/without-trailing.ts";

/** The interfaces of an endpoint in Keystone's catalogue. */
export const ENDPOINT_INTERFACES = ["public", "internal", "admin"] as const;
export type EndpointInterface = (typeof ENDPOINT_INTERFACES)[number];

/** The endpoints that one service has according to Keystone's catalogue. */
export interface CatalogueService {
  readonly type: string;
  readonly endpoints: readonly {
    readonly interface: string;
    /** Null where the catalogue names no region. */
    readonly region: string | null;
    readonly url: string;
  }[];
}

/**
 * Reads the catalogue of Keystone's answer to a login. Entries that do not match its API are left out.
 *
 * Source: https://docs.openstack.org/api-ref/identity/v3/#password-authentication-with-scoped-authorization
 */
export function readCatalogue(document: unknown): readonly CatalogueService[] {
  return listOf(document).map((service) => ({
    type: textOf(service.type),
    endpoints: listOf(service.endpoints).flatMap((endpoint) => {
      const url = textOf(endpoint.url);
      const region = textOf(endpoint.region_id) || textOf(endpoint.region) || null;
      return url === "" ? [] : [{ interface: textOf(endpoint.interface), region, url }];
    }),
  }));
}

/** Returns the URL of the first endpoint that fits. The types are tried in their order. Null if none fits. Without a region, any region fits. */
export function endpointUrl(
  catalogue: readonly CatalogueService[],
  wanted: { readonly types: readonly string[]; readonly interface: EndpointInterface; readonly region: string | null },
): string | null {
  for (const type of wanted.types)
    for (const service of catalogue)
      for (const endpoint of service.type === type ? service.endpoints : [])
        if (endpoint.interface === wanted.interface && (wanted.region === null || endpoint.region === wanted.region))
          return withoutTrailing(endpoint.url, "/");
  return null;
}

type Fields = Readonly<Record<string, unknown>>;

const listOf = (value: unknown): readonly Fields[] =>
  Array.isArray(value) ? value.filter((one) => typeof one === "object" && one !== null) : [];

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
