import type { ServerDetail } from "../services/api/compute/servers/server-schemas.ts";
import type { ChaosApi } from "./chaos-api.ts";
import type { ChaosHistory } from "./chaos-history.ts";
import { type ChaosServer, isOpen } from "./chaos-server.ts";

const WATCHER = "watcher";
const EVERY_MS = 250;
/** When more servers than this are watched, they are looked up in the list, which is cheaper. */
const SHOWN_MAX = 20;
const PAGE_MAX = 1_000;
/** Number of servers whose actions are read at a time. */
const TOLD_AT_ONCE = 4;
const BUILD_EVENT = "compute__do_build_and_run_instance";

interface Action {
  readonly action: string;
  readonly request_id: string;
  readonly events?: readonly { readonly event: string; readonly result: string | null; readonly details?: string }[];
}

/** Asks the API repeatedly for the state of servers, and records each end that it sees. */
export class ServerWatch {
  readonly #api: ChaosApi;
  readonly #history: ChaosHistory;
  readonly #servers: readonly ChaosServer[];
  readonly #onEnd: (server: ChaosServer) => void;
  #stopped = false;
  #watching: Promise<void> = Promise.resolve();
  /** Position in the servers that are looked up one by one, so that those missing from the list are all looked at. */
  #turn = 0;
  /** Ends that were seen and are not recorded yet, and the work that records them. */
  readonly #ended: { readonly server: ChaosServer; readonly atMs: number; readonly state: "ACTIVE" | "ERROR" }[] = [];
  readonly #telling = new Set<Promise<void>>();

  /** `servers` may grow. */
  constructor(options: {
    readonly api: ChaosApi;
    readonly history: ChaosHistory;
    readonly servers: readonly ChaosServer[];
    readonly onEnd: (server: ChaosServer) => void;
  }) {
    this.#api = options.api;
    this.#history = options.history;
    this.#servers = options.servers;
    this.#onEnd = options.onEnd;
  }

  begin(): void {
    this.#watching = this.#watch();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#watching;
    await Promise.all(this.#telling);
    await this.#tellEnded(); // These are ends that were seen while the others were recorded.
  }

  async #watch(): Promise<void> {
    while (!this.#stopped) {
      await this.#look();
      await new Promise((resolve) => setTimeout(resolve, EVERY_MS));
    }
  }

  async #look(): Promise<void> {
    const open = this.#servers.filter(isOpen);
    if (open.length === 0) return;
    let left = open;
    if (open.length > SHOWN_MAX) {
      const listed = await this.#list(Math.min(PAGE_MAX, open.length * 2 + SHOWN_MAX));
      if (listed === null) return;
      for (const server of open) {
        const found = listed.get(server.uuid ?? "");
        if (found !== undefined) this.#see(server, found);
      }
      left = open.filter((server) => !listed.has(server.uuid ?? ""));
    }
    const some = left.length <= SHOWN_MAX ? left : left.slice(this.#turn % left.length).slice(0, SHOWN_MAX);
    this.#turn += SHOWN_MAX;
    await Promise.all(some.map((server) => this.#show(server)));
  }

  async #list(limit: number): Promise<ReadonlyMap<string, ServerDetail> | null> {
    const path = `/servers/detail?limit=${limit}`;
    const answer = await this.#api.ask({ who: WATCHER, op: "list", method: "GET", path });
    if (answer.kind !== "ok") return null;
    const { servers } = answer.body as { readonly servers: readonly ServerDetail[] };
    return new Map(servers.map((server) => [server.id, server]));
  }

  async #show(server: ChaosServer): Promise<void> {
    const uuid = server.uuid ?? "";
    const call = { who: WATCHER, op: "show", method: "GET", path: `/servers/${uuid}`, server: uuid } as const;
    const answer = await this.#api.ask(call);
    if (answer.kind === "ok") this.#see(server, (answer.body as { readonly server: ServerDetail }).server);
    else if (answer.status === 404) this.#gone(server);
  }

  #gone(server: ChaosServer): void {
    if (server.deleting === "no") {
      server.lost = true;
      return;
    }
    server.state = "DELETED";
    const now = this.#history.now();
    const sinceMs = server.deleting === "accepted" ? server.deleteAcceptedMs : server.acceptedMs;
    const line = {
      who: server.client,
      server: server.uuid ?? "",
      state: "DELETED",
      ms: rounded(now - sinceMs),
    } as const;
    this.#history.write({ ...line, what: "state" });
  }

  #see(server: ChaosServer, shown: ServerDetail): void {
    if (server.operations === "awaited") this.#seeRest(server, shown);
    if (server.state !== "open" || (shown.status !== "ACTIVE" && shown.status !== "ERROR")) return;
    const launchedAt = shown["OS-SRV-USG:launched_at"];
    server.state = shown.status;
    server.endedMs = this.#history.now();
    server.host = shown["OS-EXT-SRV-ATTR:host"] ?? null;
    server.launchedAtMs =
      launchedAt == null ? null : Date.parse(launchedAt.endsWith("Z") ? launchedAt : `${launchedAt}Z`);
    server.fault = shown.fault?.message ?? null;
    this.#onEnd(server);
    this.#ended.push({ server, atMs: server.endedMs, state: server.state });
    if (this.#telling.size >= TOLD_AT_ONCE) return;
    const telling = this.#tellEnded().finally(() => this.#telling.delete(telling));
    this.#telling.add(telling);
  }

  /** Sees whether a server that clients operated on has no task left, or has failed. */
  #seeRest(server: ChaosServer, shown: ServerDetail): void {
    if (shown["OS-EXT-STS:task_state"] !== null) return;
    server.operations = "ended";
    if (shown.status !== "ERROR" || server.state === "ERROR") return;
    server.state = "ERROR";
    server.fault = shown.fault?.message ?? null;
    this.#ended.push({ server, atMs: this.#history.now(), state: "ERROR" });
  }

  async #tellEnded(): Promise<void> {
    for (let next = this.#ended.shift(); next !== undefined; next = this.#ended.shift()) {
      await this.#tell(next.server, next.atMs, next.state);
    }
  }

  /** Records the end, with the builds of the server's actions if these can be read. */
  async #tell(server: ChaosServer, atMs: number, state: "ACTIVE" | "ERROR"): Promise<void> {
    const builds = await this.#builds(server.uuid ?? "");
    const reasons = [...(builds?.reasons ?? []), ...(server.fault === null ? [] : [server.fault])];
    this.#history.write({
      ...{ atMs, who: server.client, what: "state", server: server.uuid ?? "", state },
      ms: rounded(atMs - server.acceptedMs),
      ...(server.host === null ? {} : { host: server.host }),
      ...(builds === null ? {} : { attempts: builds.attempts }),
      ...(reasons.length === 0 ? {} : { reasons }),
    });
  }

  async #builds(uuid: string): Promise<{ readonly attempts: number; readonly reasons: readonly string[] } | null> {
    const path = `/servers/${uuid}/os-instance-actions`;
    const list = await this.#api.send({ method: "GET", path });
    if (list.kind !== "ok") return null;
    const { instanceActions } = list.body as { readonly instanceActions: readonly Action[] };
    const created = instanceActions.find(({ action }) => action === "create");
    if (created === undefined) return null;
    const answer = await this.#api.send({ method: "GET", path: `${path}/${created.request_id}` });
    if (answer.kind !== "ok") return null;
    const { events = [] } = (answer.body as { readonly instanceAction: Action }).instanceAction;
    const builds = events.filter(({ event }) => event === BUILD_EVENT);
    const failed = builds.filter(({ result }) => result === "Error").map(({ details }) => details ?? "");
    return { attempts: builds.length, reasons: failed.reverse() };
  }
}

function rounded(ms: number): number {
  return Math.round(ms * 10) / 10;
}
