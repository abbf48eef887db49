import type { RealCloud } from "./real-cloud.ts";
import type { Answer } from "./samples/answer.ts";

/** Calls the Compute API of a cloud as the administrator, with a microversion that newer clients use. Throws if the answer is no success. */
export async function computeCall(
  { url, keystone }: RealCloud,
  method: string,
  path: string,
  body?: unknown,
): Promise<Answer> {
  const token = await keystone.issue();
  const headers = {
    ...{ "x-auth-token": token, "openstack-api-version": "compute 2.90", "content-type": "application/json" },
  };
  const answer = await fetch(`${url}/v2.1${path}`, { method, headers, body: JSON.stringify(body) ?? null });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text === "" ? {} : JSON.parse(text);
}
