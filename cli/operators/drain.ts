import { setTimeout as delay } from "node:timers/promises";
import type { DrainTally } from "./drain-progress.ts";
import { type ApiAccess, callCompute, OperatorsApiError } from "./operators-client.ts";

/** Maximum number of servers that are moved at a time. */
const ON_THEIR_WAY_MAX = 32;
/** Minimum and maximum pause between two looks at a server, and between two tries while a cell does not answer, in milliseconds. */
const PAUSE_MS_MIN = 100;
const PAUSE_MS_MAX = 1_000;
/** Number of tries of a call while a cell does not answer. */
const TRIES_MAX = 60;
/** A move that takes longer than this counts as failed in the report, but continues. */
const MOVE_MS_MAX = 30 * 60_000;
const PAGE = 1_000;
const EVENTS_SHOWN_MAX = 3;

export interface DrainReport {
  readonly moved: number;
  readonly stayed: readonly { readonly id: string; readonly name: string; readonly why: string }[];
  readonly seconds: number;
}

interface Shown {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly "OS-EXT-SRV-ATTR:host": string | null;
  readonly "OS-EXT-STS:task_state": string | null;
}

interface Action {
  readonly action: string;
  readonly request_id: string;
  readonly events?: readonly { readonly host: string | null; readonly details: string | null }[];
}

/** Moves all servers away from one host through the Compute API, several at a time, and confirms the moves that need it. */
export class Drain {
  readonly tally: DrainTally = { total: 0, moved: 0, stayed: 0 };
  readonly #access: ApiAccess;
  readonly #host: string;
  readonly #live: boolean;
  readonly #stayed: { id: string; name: string; why: string }[] = [];

  constructor(access: ApiAccess, options: { readonly host: string; readonly live: boolean }) {
    this.#access = access;
    this.#host = options.host;
    this.#live = options.live;
  }

  /** Rejects when the api cannot be reached. Moves that were begun continue. */
  async run(): Promise<DrainReport> {
    const startedMs = performance.now();
    const servers = await this.#residents();
    this.tally.total = servers.length;
    const queue = servers.values();
    const work = async () => {
      for (const server of queue) await this.#moveAway(server);
    };
    await Promise.all(Array.from({ length: ON_THEIR_WAY_MAX }, work));
    const seconds = (performance.now() - startedMs) / 1000;
    return { moved: this.tally.moved, stayed: this.#stayed, seconds };
  }

  async #residents(): Promise<readonly Shown[]> {
    const found: Shown[] = [];
    let marker = "";
    for (;;) {
      const after = marker === "" ? "" : `&marker=${marker}`;
      const path = `/servers/detail?all_tenants=1&host=${encodeURIComponent(this.#host)}&limit=${PAGE}${after}`;
      const { servers } = await this.#call<{ servers: Shown[] }>("GET", path);
      found.push(...servers);
      const last = servers.at(-1);
      if (last === undefined || servers.length < PAGE) return found;
      marker = last.id;
    }
  }

  async #moveAway(server: Shown): Promise<void> {
    const why = await this.#tryToMove(server);
    if (why === null) {
      this.tally.moved += 1;
    } else {
      this.tally.stayed += 1;
      this.#stayed.push({ id: server.id, name: server.name, why });
    }
  }

  /** Resolves with null when the server has left the host. */
  async #tryToMove(server: Shown): Promise<string | null> {
    try {
      await this.#act(server.id, this.#actionFor(server));
      const after = await this.#settled(server.id);
      if (after === null) return null;
      if (after["OS-EXT-SRV-ATTR:host"] === this.#host) return await this.#whyItStayed(server.id, after);
      if (after.status !== "VERIFY_RESIZE") return null;
      await this.#act(server.id, { confirmResize: null });
      const confirmed = await this.#settled(server.id);
      return confirmed?.status === "VERIFY_RESIZE" ? "it was moved, but the move could not be confirmed" : null;
    } catch (error) {
      if (error instanceof OperatorsApiError && error.code === "404") return null;
      if (error instanceof OperatorsApiError && error.code !== "unreachable") return error.message;
      throw error;
    }
  }

  #actionFor({ status }: Shown): Readonly<Record<string, unknown>> {
    const isLive = this.#live && status === "ACTIVE";
    return isLive ? { "os-migrateLive": { host: null, block_migration: "auto" } } : { migrate: null };
  }

  async #act(id: string, body: Readonly<Record<string, unknown>>): Promise<void> {
    await this.#call("POST", `/servers/${id}/action`, body);
  }

  /** Resolves with the server once no task is under way, or with null when it is gone. */
  async #settled(id: string): Promise<Shown | null> {
    const deadline = performance.now() + MOVE_MS_MAX;
    for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(PAUSE_MS_MAX, pauseMs * 1.5)) {
      const shown = await this.#call<{ server: Shown }>("GET", `/servers/${id}`).catch((error: unknown) => {
        if (error instanceof OperatorsApiError && error.code === "404") return null;
        throw error;
      });
      if (shown === null || shown.server["OS-EXT-STS:task_state"] === null) return shown?.server ?? null;
      if (performance.now() > deadline) return shown.server;
      await delay(pauseMs);
    }
  }

  /** Takes the reason from the events of the server's last action. */
  async #whyItStayed(id: string, { status }: Shown): Promise<string> {
    const path = `/servers/${id}/os-instance-actions`;
    const { instanceActions } = await this.#call<{ instanceActions: Action[] }>("GET", path);
    const [last] = instanceActions;
    if (last === undefined) return `it is ${status}`;
    const { instanceAction } = await this.#call<{ instanceAction: Action }>("GET", `${path}/${last.request_id}`);
    const reasons = (instanceAction.events ?? []).flatMap(({ host, details }) =>
      details === null ? [] : [host === null ? details : `${host}: ${details}`],
    );
    return reasons.length === 0 ? `it is ${status}` : reasons.slice(0, EVENTS_SHOWN_MAX).join("; ");
  }

  /** Repeats the call while the api says that it cannot answer now. */
  async #call<Answer>(method: "GET" | "POST", path: string, body?: unknown): Promise<Answer> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await callCompute<Answer>(this.#access, method, path, body);
      } catch (error) {
        if (!(error instanceof OperatorsApiError) || error.code !== "503" || tries === TRIES_MAX) throw error;
      }
      await delay(PAUSE_MS_MAX);
    }
  }
}
