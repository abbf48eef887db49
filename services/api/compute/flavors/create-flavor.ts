import { randomUUID } from "node:crypto";
import type { FlavorRecord } from "../../../../core/stores/api/api-store.ts";
import { conflict, invalidField } from "../../http/fault.ts";
import { readFlag } from "../../http/schema.ts";
import type { FlavorsPort } from "../../ports.ts";
import type { CreateFlavorBody } from "./flavor-schemas.ts";
import { WITHOUT_FACTOR_FROM_MINOR } from "./flavor-view.ts";

/** From this microversion on a flavor may have a description. */
const DESCRIPTION_FROM_MINOR = 55;

/** `POST /flavors`: refuses an id or a name that is taken. */
export async function createFlavor(
  deps: { readonly store: Pick<FlavorsPort, "createFlavor"> },
  body: CreateFlavorBody,
  minor: number,
): Promise<FlavorRecord> {
  const flavor = readFlavor(body, minor);
  const outcome = await deps.store.createFlavor(flavor);
  switch (outcome) {
    case "created":
      return flavor;
    case "id-taken":
      throw conflict(`Flavor with ID ${flavor.id} already exists.`);
    case "name-taken":
      throw conflict(`Flavor with name ${flavor.name} already exists.`);
    default:
      return outcome satisfies never;
  }
}

function readFlavor({ flavor }: CreateFlavorBody, minor: number): FlavorRecord {
  if (flavor.description !== undefined && minor < DESCRIPTION_FROM_MINOR) {
    throw invalidField("flavor", flavor, "Additional properties are not allowed ('description' was unexpected)");
  }
  if (flavor.rxtx_factor !== undefined && minor >= WITHOUT_FACTOR_FROM_MINOR) {
    throw invalidField("flavor", flavor, "Additional properties are not allowed ('rxtx_factor' was unexpected)");
  }
  return {
    id: flavor.id == null ? randomUUID() : String(flavor.id),
    name: flavor.name,
    vcpus: sized("vcpus", flavor.vcpus, 1),
    memoryMib: sized("ram", flavor.ram, 1),
    diskGib: sized("disk", flavor.disk, 0),
    ephemeralGib: sized("OS-FLV-EXT-DATA:ephemeral", flavor["OS-FLV-EXT-DATA:ephemeral"] ?? 0, 0),
    swapMib: sized("swap", flavor.swap ?? 0, 0),
    rxtxFactor: factor(flavor.rxtx_factor ?? 1),
    isPublic:
      flavor["os-flavor-access:is_public"] === undefined || readFlag(flavor["os-flavor-access:is_public"]) === true,
    description: flavor.description ?? null,
    extraSpecs: {},
  };
}

const INT_MAX = 2_147_483_647;

/** The schema checks the bounds of numbers only; digits in a string are checked here. */
function sized(field: string, given: number | string, least: number): number {
  const value = Number(given);
  if (value < least || value > INT_MAX) throw invalidField(field, given, `must be from ${least} to ${INT_MAX}`);
  return value;
}

function factor(given: number | string): number {
  const value = Number(given);
  if (value <= 0 || value > 3.40282e38) throw invalidField("rxtx_factor", given, "must be > 0");
  return value;
}
