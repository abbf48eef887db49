import { Type } from "typebox";
import { callOf } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { badRequest, type Fault, notFound } from "../../http/fault.ts";
import { explainBadExtraSpec } from "./check-extra-specs.ts";
import { type FlavorDeps, findFlavor, flavorNotFound } from "./flavor-routes.ts";
import {
  CreateExtraSpecsBody,
  ExtraSpecAnswer,
  ExtraSpecsAnswer,
  type ExtraSpecValues,
  FLAVOR_ID,
  UpdateExtraSpecBody,
} from "./flavor-schemas.ts";
import { explainUnknownExtraSpec } from "./known-extra-specs.ts";

const FlavorParams = Type.Object({ flavorId: Type.String() });
const KeyParams = Type.Object({ flavorId: Type.String(), key: Type.String() });

type Specs = Readonly<Record<string, string>>;

/** `/flavors/{id}/os-extra_specs`. Only admins write; new values are checked. */
export function registerExtraSpecRoutes(http: Http, deps: FlavorDeps): void {
  const path = "/flavors/:flavorId/os-extra_specs";
  registerReads(http, deps, path);

  http.post(
    path,
    {
      config: { rule: "os-flavor-extra-specs:create" },
      schema: { params: FlavorParams, body: CreateExtraSpecsBody, response: { 200: ExtraSpecsAnswer } },
    },
    async (request) => {
      const given = readSpecs(request.body.extra_specs, callOf(request).minor);
      await change(deps, request.params.flavorId, (now) => ({ ...now, ...given }));
      return { extra_specs: given };
    },
  );

  http.put(
    `${path}/:key`,
    {
      config: { rule: "os-flavor-extra-specs:update" },
      schema: { params: KeyParams, body: UpdateExtraSpecBody, response: { 200: ExtraSpecAnswer } },
    },
    async (request) => {
      const given = readSpecs(request.body, callOf(request).minor);
      const { flavorId, key } = request.params;
      if (!Object.hasOwn(given, key)) throw badRequest("Request body and URI mismatch");
      await change(deps, flavorId, (now) => ({ ...now, ...given }));
      return given;
    },
  );

  const deletion = { config: { rule: "os-flavor-extra-specs:delete" }, schema: { params: KeyParams } };
  http.delete(`${path}/:key`, deletion, async (request, reply) => {
    const { flavorId, key } = request.params;
    let missing = false;
    await change(deps, flavorId, (now) => {
      missing = !Object.hasOwn(now, key);
      const { [key]: _gone, ...others } = now;
      return others;
    });
    if (missing) throw noSuchKey(flavorId, key);
    return reply.code(200).send();
  });
}

function registerReads(http: Http, deps: FlavorDeps, path: string): void {
  http.get(
    path,
    {
      config: { rule: "os-flavor-extra-specs:index" },
      schema: { params: FlavorParams, response: { 200: ExtraSpecsAnswer } },
    },
    async (request) => {
      const flavor = await findFlavor(deps.store, request.params.flavorId, callOf(request).identity);
      return { extra_specs: flavor.extraSpecs };
    },
  );

  http.get(
    `${path}/:key`,
    {
      config: { rule: "os-flavor-extra-specs:show" },
      schema: { params: KeyParams, response: { 200: ExtraSpecAnswer } },
    },
    async (request) => {
      const { flavorId, key } = request.params;
      const { extraSpecs } = await findFlavor(deps.store, flavorId, callOf(request).identity);
      if (!Object.hasOwn(extraSpecs, key)) throw noSuchKey(flavorId, key);
      return { [key]: extraSpecs[key] ?? "" };
    },
  );
}

async function change(deps: FlavorDeps, flavorId: string, next: (now: Specs) => Specs): Promise<void> {
  const written = FLAVOR_ID.test(flavorId) ? await deps.store.updateExtraSpecs(flavorId, next) : null;
  deps.catalog.forget(flavorId);
  if (written === null) throw flavorNotFound(flavorId);
}

/** The microversion from which on names and values are checked as Nova checks them. What Berth can never satisfy is refused at any. */
const CHECKED_FROM_MINOR = 86;

/** Returns the given extra specs as they are stored, with numbers as their digits. Refuses all of them if one is invalid. */
function readSpecs(values: ExtraSpecValues, minor: number): Record<string, string> {
  const specs = Object.fromEntries(Object.entries(values).map(([key, value]) => [key, String(value)]));
  for (const [key, value] of Object.entries(specs)) {
    const unknown = minor < CHECKED_FROM_MINOR ? null : explainUnknownExtraSpec(key, value);
    const refusal = unknown ?? explainBadExtraSpec(key, value);
    if (refusal !== null) throw badRequest(refusal);
  }
  return specs;
}

function noSuchKey(flavorId: string, key: string): Fault {
  return notFound(`Flavor ${flavorId.slice(0, 100)} has no extra specs with key ${key.slice(0, 100)}.`);
}
