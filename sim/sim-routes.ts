import { registerNeighbour } from "../services/api/http/register-neighbour.ts";
import { OPERATORS_PREFIX } from "../services/api/operators/register-operators.ts";
import { registerVolumeSettling } from "../services/api/operators/volume-routes.ts";
import { SERVER_LIFE_ROUTES } from "../services/api/register-routes.ts";
import type { SimNeighbours } from "./sim-neighbours.ts";

/** The routes of an api that simulated users call. Where Cinder migrates volumes, operators settle those that are in doubt. */
export function simRoutes({ cinder }: Pick<SimNeighbours, "cinder">): typeof SERVER_LIFE_ROUTES {
  if (cinder === null || cinder.migrations === null) return SERVER_LIFE_ROUTES;
  return {
    ...SERVER_LIFE_ROUTES,
    neighbours: (_deps, { http, server }, _settings, resolveIdentity) =>
      registerNeighbour(http, { prefix: OPERATORS_PREFIX, serviceTypes: [] }, resolveIdentity, (scope) =>
        registerVolumeSettling(scope, server),
      ),
  };
}
