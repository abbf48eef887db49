import { setTimeout as delay } from "node:timers/promises";
import { FAKE_METADATA_KEY, type FakeScript } from "../services/compute-agent/fake-script.ts";
import type { ChaosApi } from "./chaos-api.ts";
import type { ChaosHistory } from "./chaos-history.ts";
import { type ChaosServer, newServer } from "./chaos-server.ts";
import type { LoadPlan } from "./plan.ts";

export interface LoadOptions {
  readonly plan: LoadPlan;
  readonly api: ChaosApi;
  readonly history: ChaosHistory;
  readonly random: () => number;
  readonly flavor: string;
  /** Share of the builds that are to fail at this moment, from 0 to 1. */
  readonly failShare: () => number;
  /** Servers that were asked for; the load adds to this list. */
  readonly servers: ChaosServer[];
  /** Prefix of the names of servers. */
  readonly namePrefix: string;
}

/** How long a client waits before it asks for another server when its request was refused or got no answer. */
const DISAPPOINTED_MS = 200;

/** Clients that create servers and delete some of them, according to a plan. */
export class Load {
  readonly #options: LoadOptions;
  /** Called when a server has ended, for clients that wait for that. */
  readonly #waiting = new Map<ChaosServer, () => void>();
  readonly #deleting = new Set<Promise<void>>();
  readonly #deleteAtEnd = new Set<ChaosServer>();
  #asked = 0;
  readonly #stopping = new AbortController();
  #clients: Promise<unknown> = Promise.resolve();
  #open = 0;

  constructor(options: LoadOptions) {
    this.#options = options;
  }

  /** Whether all clients have made all of their requests. */
  get done(): boolean {
    return this.#open === 0;
  }

  begin(): void {
    const { clients, rate } = this.#options.plan;
    this.#open = clients;
    const names = Array.from({ length: clients }, (_, index) => `client-${index + 1}`);
    this.#clients = Promise.all(
      names.map((name, index) =>
        (rate === null ? this.#inTurn(name) : this.#atRate(name, index, (1_000 * clients) / rate)).finally(() => {
          this.#open -= 1;
        }),
      ),
    );
  }

  /** Sends no more requests. Resolves when all requests that were sent are answered or given up. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    for (const resolve of this.#waiting.values()) resolve();
    await this.#clients;
    await Promise.all(this.#deleting);
  }

  /** Must be called when a server has ended. */
  onEnd(server: ChaosServer): void {
    this.#waiting.get(server)?.();
    this.#waiting.delete(server);
    if (this.#deleteAtEnd.delete(server) && !this.#stopping.signal.aborted) this.#delete(server);
  }

  /** Asks for each server when the one before is finished. */
  async #inTurn(client: string): Promise<void> {
    const { plan } = this.#options;
    while (this.#mayAsk()) {
      const server = await this.#create(client);
      if (server.uuid === null) await this.#pause(DISAPPOINTED_MS);
      else if (plan.next === "ended") await this.#ended(server);
    }
  }

  /** Asks for servers at a fixed rate, whatever becomes of them; clients take turns. */
  async #atRate(client: string, index: number, everyMs: number): Promise<void> {
    const { plan, history } = this.#options;
    const creating = new Set<Promise<unknown>>();
    let nextMs = history.now() + (index * everyMs) / plan.clients;
    while (!this.#stopping.signal.aborted) {
      await this.#pause(nextMs - history.now());
      if (!this.#mayAsk()) break;
      nextMs += everyMs;
      const one = this.#create(client).finally(() => creating.delete(one));
      creating.add(one);
    }
    await Promise.all(creating);
  }

  #mayAsk(): boolean {
    const { creates } = this.#options.plan;
    if (this.#stopping.signal.aborted || (creates !== null && this.#asked >= creates)) return false;
    this.#asked += 1;
    return true;
  }

  async #create(client: string): Promise<ChaosServer> {
    const { api, history, servers, namePrefix, flavor, failShare, plan, random } = this.#options;
    const server = newServer(`${namePrefix}-${servers.length + 1}`, client, history.now());
    servers.push(server);
    const share = failShare();
    const failing = { outcome: "reschedule", probability: share, reason: "failed by the chaos plan" } as const;
    const script: FakeScript = { duration_ms: plan.buildMs, ...(share > 0 ? failing : {}) };
    const metadata = { [FAKE_METADATA_KEY]: JSON.stringify(script) };
    const body = { server: { name: server.name, flavorRef: flavor, imageRef: "", networks: "none", metadata } };
    const wantsDelete = random() < plan.deletes;
    const early = random() < 0.5;
    const answer = await api.ask({ who: client, op: "create", method: "POST", path: "/servers", body });
    server.requestId = answer.id;
    if (answer.kind !== "ok") {
      server.create = answer.kind;
      if (plan.retry) this.#asked -= 1;
      return server;
    }
    server.uuid = (answer.body as { readonly server: { readonly id: string } }).server.id;
    server.create = "accepted";
    server.acceptedMs = history.now();
    if (wantsDelete && early) this.#delete(server);
    else if (wantsDelete) this.#deleteAtEnd.add(server);
    return server;
  }

  #delete(server: ChaosServer): void {
    const deleting = askForDelete(server, this.#options).finally(() => this.#deleting.delete(deleting));
    this.#deleting.add(deleting);
  }

  /** Resolves when the server has ended, or has been deleted, which the watch need not see as an end. */
  #ended(server: ChaosServer): Promise<void> {
    if (this.#stopping.signal.aborted || server.state !== "open" || server.deleting !== "no") return Promise.resolve();
    return new Promise((resolve) => this.#waiting.set(server, resolve));
  }

  async #pause(ms: number): Promise<void> {
    // The end of the load aborts the pause. This is not an error.
    if (ms > 0) await delay(ms, undefined, { signal: this.#stopping.signal }).catch(() => undefined);
  }
}

/** Asks for the server's deletion, and records the outcome in the server. */
export async function askForDelete(
  server: ChaosServer,
  { api, history }: Pick<LoadOptions, "api" | "history">,
): Promise<void> {
  const uuid = server.uuid ?? "";
  server.deleting = "asked";
  const path = `/servers/${uuid}`;
  const answer = await api.ask({ who: server.client, op: "delete", method: "DELETE", path, server: uuid });
  // A server that is already gone counts as deleted.
  const isDone = answer.kind === "ok" || answer.status === 404;
  server.deleting = isDone ? "accepted" : answer.kind === "unknown" ? "unknown" : "no";
  server.deleteAcceptedMs = history.now();
}
