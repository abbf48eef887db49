import type { ChaosApi } from "./chaos-api.ts";
import { insist } from "./insist.ts";

const PAGE = 1_000;
const PAGES_MAX = 1_000;

/**
 * Resolves with names and UUIDs of all servers, page by page. Retries when there is no answer, and throws a NotServedError when that does
 * not help.
 */
export async function listAllServers(
  api: ChaosApi,
): Promise<readonly { readonly name: string; readonly uuid: string }[]> {
  const all: { name: string; uuid: string }[] = [];
  for (let page = 0; page < PAGES_MAX; page += 1) {
    const marker = all.length === 0 ? "" : `&marker=${all.at(-1)?.uuid}`;
    const answer = await insist(api, () => api.send({ method: "GET", path: `/servers?limit=${PAGE}${marker}` }));
    const { servers } = answer.body as { readonly servers: readonly { readonly id: string; readonly name: string }[] };
    all.push(...servers.map(({ id, name }) => ({ name, uuid: id })));
    if (servers.length < PAGE) return all;
  }
  throw new Error(`more than ${PAGE * PAGES_MAX} servers`);
}
