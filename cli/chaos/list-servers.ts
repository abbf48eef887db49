import { setTimeout as delay } from "node:timers/promises";
import type { ChaosApi, Outcome } from "./chaos-api.ts";

const FLAVOR = "chaos";
const PAGE = 1_000;
const PAGES_MAX = 1_000;
const TRIES_MAX = 20;
const RETRY_MS = 500;

/** The API did not do what no run can do without. */
export class NotServedError extends Error {
  readonly code = "not-served";

  constructor(message: string) {
    super(message);
    this.name = "NotServedError";
  }
}

/** Names and uuids of all servers, page by page. Asks again when it is not answered; throws a NotServedError when that does not help. */
export async function listServers(api: ChaosApi): Promise<readonly { readonly name: string; readonly uuid: string }[]> {
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

/** Makes the flavor of all servers of a run, unless it is there, and returns its id. */
export async function createFlavor(api: ChaosApi): Promise<string> {
  const body = { flavor: { id: FLAVOR, name: FLAVOR, vcpus: 1, ram: 512, disk: 1 } };
  await insist(api, async () => {
    const answer = await api.send({ method: "POST", path: "/flavors", body });
    return answer.status === 409 ? { kind: "ok", status: 409, body: null } : answer;
  });
  return FLAVOR;
}

async function insist(api: ChaosApi, ask: () => Promise<Outcome>): Promise<Extract<Outcome, { readonly kind: "ok" }>> {
  for (let tries = 1; ; tries += 1) {
    const answer = await ask();
    if (answer.kind === "ok") return answer;
    if (tries === TRIES_MAX || (answer.kind === "refused" && answer.status !== 0)) {
      throw new NotServedError(`the API does not do its part: ${answer.status ?? ""} ${answer.reason}`);
    }
    api.throwIfBrokenOff();
    await delay(RETRY_MS);
  }
}
