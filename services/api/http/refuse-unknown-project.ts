import type { KnownCall } from "./call.ts";
import { badRequest } from "./fault.ts";

/** Whether Keystone says to the owner of this token that there is no such project. False if Keystone does not answer, or does not let the owner know. */
export type IsUnknownProject = (projectId: string, callerToken: string) => Promise<boolean>;

/**
 * Refuses a project that Keystone does not know (400), so that nobody sets limits, or shares flavors, for a misspelt project. Without Keystone every project
 * is taken. Nobody needs to ask for the caller's own project. Source: `verify_project_id` of Nova's API, which asks in the caller's name, too.
 */
export async function refuseUnknownProject(
  isUnknown: IsUnknownProject | null,
  projectId: string,
  { token, identity }: Pick<KnownCall, "token" | "identity">,
): Promise<void> {
  if (isUnknown === null || token === null || projectId === identity.projectId) return;
  if (await isUnknown(projectId, token)) throw badRequest(`Project ID ${projectId} is not a valid project.`);
}
