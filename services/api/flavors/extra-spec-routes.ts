import { Type } from "typebox";
import { callOf, requireAdmin } from "../http/call.ts";
import type { Http } from "../http/create-http.ts";
import { badRequest, type Fault, notFound } from "../http/fault.ts";
import { checkExtraSpecs } from "./check-extra-specs.ts";
import { type FlavorDeps, findFlavor, flavorNotFound } from "./flavor-routes.ts";
import {
  CreateExtraSpecsBody,
  ExtraSpecAnswer,
  ExtraSpecsAnswer,
  type ExtraSpecValues,
  FLAVOR_ID,
  UpdateExtraSpecBody,
} from "./flavor-schemas.ts";

const FlavorParams = Type.Object({ flavorId: Type.String() });
const KeyParams = Type.Object({ flavorId: Type.String(), key: Type.String() });

type Specs = Readonly<Record<string, string>>;

/** `/flavors/{id}/os-extra_specs`. What a flavor asks for is checked when it is written; only admins write. */
export function registerExtraSpecRoutes(http: Http, deps: FlavorDeps): void {
  const path = "/flavors/:flavorId/os-extra_specs";
  registerReads(http, deps, path);

  http.post(
    path,
    { schema: { params: FlavorParams, body: CreateExtraSpecsBody, response: { 200: ExtraSpecsAnswer } } },
    async (request) => {
      requireAdmin(callOf(request), "os-flavor-extra-specs:create");
      const given = textsOf(request.body.extra_specs);
      await change(deps, request.params.flavorId, (now) => ({ ...now, ...given }));
      return { extra_specs: given };
    },
  );

  http.put(
    `${path}/:key`,
    { schema: { params: KeyParams, body: UpdateExtraSpecBody, response: { 200: ExtraSpecAnswer } } },
    async (request) => {
      requireAdmin(callOf(request), "os-flavor-extra-specs:update");
      const given = textsOf(request.body);
      const { flavorId, key } = request.params;
      if (!Object.hasOwn(given, key)) throw badRequest("Request body and URI mismatch");
      await change(deps, flavorId, (now) => ({ ...now, ...given }));
      return given;
    },
  );

  http.delete(`${path}/:key`, { schema: { params: KeyParams } }, async (request, reply) => {
    requireAdmin(callOf(request), "os-flavor-extra-specs:delete");
    const { flavorId, key } = request.params;
    await change(deps, flavorId, (now) => {
      if (!Object.hasOwn(now, key)) throw noSuchKey(flavorId, key);
      const { [key]: _gone, ...others } = now;
      return others;
    });
    return reply.code(200).send();
  });
}

function registerReads(http: Http, deps: FlavorDeps, path: string): void {
  http.get(path, { schema: { params: FlavorParams, response: { 200: ExtraSpecsAnswer } } }, async (request) => {
    const flavor = await findFlavor(deps.store, request.params.flavorId, callOf(request).identity.isAdmin);
    return { extra_specs: flavor.extraSpecs };
  });

  http.get(`${path}/:key`, { schema: { params: KeyParams, response: { 200: ExtraSpecAnswer } } }, async (request) => {
    const { flavorId, key } = request.params;
    const { extraSpecs } = await findFlavor(deps.store, flavorId, callOf(request).identity.isAdmin);
    if (!Object.hasOwn(extraSpecs, key)) throw noSuchKey(flavorId, key);
    return { [key]: extraSpecs[key] ?? "" };
  });
}

/** Checks what the extra specs would be as a whole, and writes them: a refused change leaves the flavor as it was. */
async function change(deps: FlavorDeps, flavorId: string, next: (now: Specs) => Specs): Promise<void> {
  const flavor = FLAVOR_ID.test(flavorId) ? await deps.store.flavor(flavorId) : null;
  if (flavor === null) throw flavorNotFound(flavorId);
  const written = await deps.store.updateExtraSpecs(flavorId, (now) => {
    const specs = next(now);
    const refusal = checkExtraSpecs({ ...flavor, extraSpecs: { ...specs } });
    if (refusal !== null) throw badRequest(refusal);
    return specs;
  });
  deps.catalog.forget(flavorId);
  if (written === null) throw flavorNotFound(flavorId);
}

/** A number stands for its digits. */
function textsOf(values: ExtraSpecValues): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([key, value]) => [key, String(value)]));
}

function noSuchKey(flavorId: string, key: string): Fault {
  return notFound(`Flavor ${flavorId.slice(0, 100)} has no extra specs with key ${key.slice(0, 100)}.`);
}
