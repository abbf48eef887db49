import { setTimeout as delay } from "node:timers/promises";
import { type DrainedServer, type DrainKnowledge, SILENT } from "./drain-step.ts";
import { type ApiAccess, callCompute, isUnclear, OperatorsApiError } from "./operators-client.ts";

/** Number of tries of a read while the api or a cell does not answer. */
const TRIES_MAX = 60;
/** The list of moves needs every cell of the cloud. A drain does not wait as long for cells that its host is not in. */
const LIST_MOVES_TRIES_MAX = 3;
const PAGE = 1_000;
const EVENTS_SHOWN_MAX = 3;

/** A server that keeps the host from being empty. */
export interface DrainSubject extends Pick<DrainKnowledge, "foundAs"> {
  readonly id: string;
  readonly name: string;
}

/** The answer to an action. `unclear` means that the api may have accepted it or not. */
type Answered =
  | { readonly kind: "accepted" }
  | { readonly kind: "refused"; readonly why: string }
  | { readonly kind: "unclear" };

/** While the server's cell does not answer, the last two fields are missing. */
interface Shown {
  readonly id: string;
  readonly name: string;
  readonly status: string;
  readonly "OS-EXT-SRV-ATTR:host"?: string | null;
  readonly "OS-EXT-STS:task_state"?: string | null;
}

interface Move {
  readonly uuid: string;
  readonly instance_uuid: string;
  readonly migration_type: string;
}

interface Action {
  readonly request_id: string;
  readonly events?: readonly { readonly host: string | null; readonly details: string | null }[];
}

/** The calls of the Compute API that draining one host needs. Reads are repeated while the api cannot answer. */
export class DrainApi {
  /** Why moves that wait for a confirmation could not be listed, or null. */
  unlisted: string | null = null;
  readonly #access: ApiAccess;
  readonly #host: string;
  readonly #pauseMs: number;

  /** `pauseMs` is the pause between two tries. */
  constructor(access: ApiAccess, host: string, pauseMs: number) {
    this.#access = access;
    this.#host = host;
    this.#pauseMs = pauseMs;
  }

  /** The servers that live on the host, and those that have left it by a move that is not confirmed yet. */
  async subjects(): Promise<readonly DrainSubject[]> {
    const path = `/servers/detail?all_tenants=1&host=${encodeURIComponent(this.#host)}&limit=${PAGE}`;
    const residents = await this.#pages(path, async (page) => {
      const { servers } = await this.#get<{ servers: readonly Shown[] }>(page);
      return { items: servers, last: servers.at(-1)?.id };
    });
    const unconfirmed = await this.#unconfirmed();
    return [...residents.map(({ id, name }) => ({ id, name, foundAs: "resident" as const })), ...unconfirmed];
  }

  async #unconfirmed(): Promise<readonly DrainSubject[]> {
    const host = encodeURIComponent(this.#host);
    const path = `/os-migrations?host=${host}&source_compute=${host}&status=finished&limit=${PAGE}`;
    try {
      const moves = await this.#pages(path, async (page) => {
        const { migrations } = await this.#get<{ migrations: readonly Move[] }>(page, LIST_MOVES_TRIES_MAX);
        return { items: migrations, last: migrations.at(-1)?.uuid };
      });
      this.unlisted = null;
      const subjects: DrainSubject[] = [];
      for (const move of moves) {
        const server = await this.#shown(move.instance_uuid);
        if (server?.status === SILENT)
          throw new OperatorsApiError("503", `The cell of server ${server.id} does not answer.`);
        // The list also has moves of servers that were deleted before the confirmation, and resizes that stayed on the host.
        if (server?.status !== "VERIFY_RESIZE" || server["OS-EXT-SRV-ATTR:host"] === this.#host) continue;
        const foundAs = move.migration_type === "migration" ? "unconfirmed-migration" : "unconfirmed-resize";
        subjects.push({ id: server.id, name: server.name, foundAs });
      }
      return subjects;
    } catch (error) {
      if (!(error instanceof OperatorsApiError) || !isUnclear(error)) throw error;
      this.unlisted = error.message;
      return [];
    }
  }

  /** Resolves with null when there is no such server. */
  async server(id: string): Promise<DrainedServer | null> {
    const shown = await this.#shown(id);
    if (shown === null) return null;
    const { status, "OS-EXT-SRV-ATTR:host": host = null, "OS-EXT-STS:task_state": taskState = null } = shown;
    return { status, host, taskState };
  }

  async #shown(id: string): Promise<Shown | null> {
    try {
      return (await this.#get<{ server: Shown }>(`/servers/${id}`)).server;
    } catch (error) {
      if (error instanceof OperatorsApiError && error.code === "404") return null;
      throw error;
    }
  }

  /** Requests the action once. Throws when the answer to the last try is unclear. */
  async act(
    id: string,
    body: Readonly<Record<string, unknown>>,
    { isLastTry }: { readonly isLastTry: boolean },
  ): Promise<Answered> {
    try {
      await callCompute(this.#access, "POST", `/servers/${id}/action`, body);
      return { kind: "accepted" };
    } catch (error) {
      if (!(error instanceof OperatorsApiError)) throw error;
      if (!isUnclear(error)) return { kind: "refused", why: error.message };
      if (isLastTry) throw error;
      return { kind: "unclear" };
    }
  }

  /** Resolves with the reasons in the events of the server's last action, or "". */
  async reasonsOfLastAction(id: string): Promise<string> {
    const path = `/servers/${id}/os-instance-actions`;
    const { instanceActions } = await this.#get<{ instanceActions: readonly Action[] }>(path);
    const [last] = instanceActions;
    if (last === undefined) return "";
    const { instanceAction } = await this.#get<{ instanceAction: Action }>(`${path}/${last.request_id}`);
    const reasons = (instanceAction.events ?? []).flatMap(({ host, details }) =>
      details === null ? [] : [host === null ? details : `${host}: ${details}`],
    );
    return reasons.slice(0, EVENTS_SHOWN_MAX).join("; ");
  }

  async #pages<Item>(
    path: string,
    read: (page: string) => Promise<{ readonly items: readonly Item[]; readonly last: string | undefined }>,
  ): Promise<readonly Item[]> {
    const found: Item[] = [];
    for (let marker = ""; ; ) {
      const { items, last } = await read(marker === "" ? path : `${path}&marker=${marker}`);
      found.push(...items);
      if (last === undefined || items.length < PAGE) return found;
      marker = last;
    }
  }

  async #get<Answer>(path: string, triesMax = TRIES_MAX): Promise<Answer> {
    for (let tries = 1; ; tries += 1) {
      try {
        return await callCompute<Answer>(this.#access, "GET", path);
      } catch (error) {
        if (!(error instanceof OperatorsApiError) || !isUnclear(error) || tries === triesMax) throw error;
      }
      await delay(this.#pauseMs);
    }
  }
}
