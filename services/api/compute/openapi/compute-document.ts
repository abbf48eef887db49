import { describeRoutes } from "../../http/describe-routes.ts";
import type { KnownRoute } from "../../http/known-paths.ts";
import { MINOR_MAX, MINOR_MIN } from "../../http/microversion.ts";
import type { OpenApiDocument } from "../../placement/openapi.ts";
import { COMPUTE_OPERATIONS } from "./compute-operations.ts";

/** Describes the routes of the Compute API below `prefix`. Throws for a route that `COMPUTE_OPERATIONS` lacks. */
export function computeDocument(routes: readonly KnownRoute[], prefix: string): OpenApiDocument {
  const info = {
    title: "Compute",
    version: `2.${MINOR_MAX}`,
    summary: "OpenStack's Compute API, as Berth serves it.",
    description: DESCRIPTION,
  };
  return describeRoutes(routes, { prefix, info, operations: COMPUTE_OPERATIONS, hasMicroversions: true });
}

const DESCRIPTION = `Microversions 2.${MINOR_MIN} to 2.${MINOR_MAX}. An operation is there from \`x-since\` to \`x-until\`, or in all later ones. The rule \
\`x-policy-rule\` of the policy says who may call it; outside of its microversions it answers 404. Bodies have the schemas that they are checked with. \
Some fields depend on the microversion as well. From 2.75 on, \
operations that have query parameters refuse all others.`;
