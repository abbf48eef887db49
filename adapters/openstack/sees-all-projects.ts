import { OWN_NAME } from "../../core/stores/networking.ts";
import type { NeighbourClient } from "./neighbour-client.ts";

const FORBIDDEN_STATUS = 403;

/**
 * Whether this service's login is an admin of Cinder. To any other one, Cinder's lists of all projects show only the login's own project, without an error. Only admins may read
 * Cinder's services, unless its policy has other rules. Rejects with a `NeighbourError`.
 */
export async function seesAllProjects(client: Pick<NeighbourClient, "call">): Promise<boolean> {
  const path = "/os-services?binary=cinder-scheduler";
  const { status } = await client.call({ method: "GET", path, ...OWN_NAME, expect: [200, FORBIDDEN_STATUS] });
  return status !== FORBIDDEN_STATUS;
}
