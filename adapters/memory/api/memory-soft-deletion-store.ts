import {
  DOUBLINGS_MAX,
  type RestoreOutcome,
  type SoftDeletion,
  type SoftDeletionStore,
} from "../../../core/stores/api/soft-deletion-store.ts";
import type { ListPosition } from "../../../core/stores/cell/listed-servers.ts";
import type { Caller } from "../../../proto/gen/berth/cell.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { MemoryApiStore } from "./memory-api-store.ts";
import type { CountedServer, MemoryQuotaStore } from "./memory-quota-store.ts";

interface KeptDeletion extends SoftDeletion {
  readonly deletedAtMs: number;
  readonly lookedAtMs: number;
  readonly settled: boolean;
  /** What the server counts for when it is restored. */
  readonly counted: CountedServer | null;
}

type Version = Pick<SoftDeletion, "serverUuid" | "version">;

/** The in-process twin of the table of soft deletions, over the stores with the requests and the quotas. */
export class MemorySoftDeletionStore implements SoftDeletionStore {
  readonly #deletions = new Map<string, KeptDeletion>();
  readonly #clock: Pick<Clock, "now">;
  readonly #requests: Pick<MemoryApiStore, "requests" | "markSoftlyDeleted">;
  readonly #quotas: Pick<MemoryQuotaStore, "setAside" | "addAgain">;

  constructor(
    clock: Pick<Clock, "now">,
    deps: {
      readonly requests: Pick<MemoryApiStore, "requests" | "markSoftlyDeleted">;
      readonly quotas: Pick<MemoryQuotaStore, "setAside" | "addAgain">;
    },
  ) {
    this.#clock = clock;
    this.#requests = deps.requests;
    this.#quotas = deps.quotas;
  }

  async deleteSoftly(serverUuid: string, askedBy: Caller): Promise<SoftDeletion | null> {
    if (!this.#requests.markSoftlyDeleted(serverUuid, true)) return null;
    const nowMs = this.#clock.now();
    return this.#keep({
      ...{ serverUuid, askedBy, aim: "deleted", tries: 0, settled: false, deletedAtMs: nowMs, lookedAtMs: nowMs },
      version: (this.#deletions.get(serverUuid)?.version ?? 0) + 1,
      counted: this.#quotas.setAside(serverUuid),
    });
  }

  async restore(
    serverUuid: string,
    { askedBy, defaults, stated }: Parameters<SoftDeletionStore["restore"]>[1],
  ): Promise<RestoreOutcome> {
    const kept = this.#deletions.get(serverUuid);
    // Nothing is awaited from here on, so that the whole is one step.
    if (kept?.aim !== "deleted" || !this.#requests.markSoftlyDeleted(serverUuid, false)) return { kind: "not-deleted" };
    const excess = kept.counted === null ? null : this.#quotas.addAgain(serverUuid, kept.counted, defaults, stated);
    if (excess !== null) {
      this.#requests.markSoftlyDeleted(serverUuid, true);
      return { kind: "over-quota", excess };
    }
    const next = { aim: "restored", version: kept.version + 1, tries: 0, settled: false } as const;
    const deletion = this.#keep({ ...kept, ...next, askedBy, counted: null, lookedAtMs: this.#clock.now() });
    return { kind: "restoring", deletion };
  }

  async softDeletion(serverUuid: string): Promise<SoftDeletion | null> {
    const kept = await this.#present(serverUuid);
    return kept === null ? null : shown(kept);
  }

  async softlyDeleted(projectId: string | null, limit: number): Promise<readonly ListPosition[]> {
    const kept = [...this.#deletions.values()].filter(({ aim }) => aim === "deleted");
    const records = await this.#requests.requests(kept.map(({ serverUuid }) => serverUuid));
    const listed = new Map(
      records
        .filter((record) => record.softlyDeleted && (projectId === null || record.spec.projectId === projectId))
        .map(({ serverUuid, createdAtMs }) => [serverUuid, { uuid: serverUuid, createdAtMs }]),
    );
    return kept
      .sort((a, b) => b.deletedAtMs - a.deletedAtMs)
      .flatMap(({ serverUuid }) => listed.get(serverUuid) ?? [])
      .slice(0, limit);
  }

  async due(untouchedMs: number, limit: number): Promise<readonly SoftDeletion[]> {
    const nowMs = this.#clock.now();
    const isDue = ({ settled, lookedAtMs, tries }: KeptDeletion) =>
      !settled && lookedAtMs <= nowMs - untouchedMs * 2 ** Math.min(tries, DOUBLINGS_MAX);
    return [...this.#deletions.values()]
      .filter(isDue)
      .sort((a, b) => a.lookedAtMs - b.lookedAtMs)
      .slice(0, limit)
      .map((kept) => this.#keep({ ...kept, lookedAtMs: nowMs }));
  }

  /** The unsettled deletions, which are not handed out. */
  unsettled(): readonly SoftDeletion[] {
    return [...this.#deletions.values()].filter(({ settled }) => !settled).map(shown);
  }

  async noteTry({ serverUuid, version }: Version): Promise<boolean> {
    const kept = this.#deletions.get(serverUuid);
    if (kept?.version !== version) return false;
    this.#keep({ ...kept, tries: kept.tries + 1, lookedAtMs: this.#clock.now() });
    return true;
  }

  async settle({ serverUuid, version }: Version): Promise<void> {
    const kept = this.#deletions.get(serverUuid);
    if (kept?.version !== version) return;
    const [record] = await this.#requests.requests([serverUuid]);
    if (kept.aim === "deleted" && record?.state === "dispatched") this.#keep({ ...kept, settled: true });
    else this.#deletions.delete(serverUuid);
  }

  async abandonRestore({ serverUuid, version }: Version): Promise<void> {
    const kept = this.#deletions.get(serverUuid);
    if (kept?.version !== version || kept.aim !== "restored") return;
    if (!this.#requests.markSoftlyDeleted(serverUuid, true)) return;
    const nowMs = this.#clock.now();
    const next = { aim: "deleted", version: version + 1, tries: 0, settled: false } as const;
    const times = { deletedAtMs: nowMs, lookedAtMs: nowMs };
    this.#keep({ ...kept, ...next, ...times, counted: this.#quotas.setAside(serverUuid) });
  }

  async reclaim(which: Version | { readonly olderThanMs: number; readonly limit: number }): Promise<number> {
    const isAsked = (kept: KeptDeletion) =>
      "version" in which
        ? kept.serverUuid === which.serverUuid && kept.version === which.version
        : kept.deletedAtMs <= this.#clock.now() - which.olderThanMs;
    const found = [...this.#deletions.values()]
      .filter((kept) => kept.aim === "deleted" && isAsked(kept))
      .sort((a, b) => a.deletedAtMs - b.deletedAtMs)
      .slice(0, "limit" in which ? which.limit : 1);
    for (const kept of found) {
      const next = { aim: "reclaimed", version: kept.version + 1, tries: 0, settled: false } as const;
      this.#keep({ ...kept, ...next, lookedAtMs: Number.NEGATIVE_INFINITY });
    }
    return found.length;
  }

  /** A deletion whose server was cancelled since is forgotten with it. */
  async #present(serverUuid: string): Promise<KeptDeletion | null> {
    const kept = this.#deletions.get(serverUuid);
    const [record] = await this.#requests.requests([serverUuid]);
    if (kept !== undefined && record?.state === "dispatched") return kept;
    this.#deletions.delete(serverUuid);
    return null;
  }

  #keep(kept: KeptDeletion): SoftDeletion {
    this.#deletions.set(kept.serverUuid, kept);
    return shown(kept);
  }
}

function shown({ serverUuid, aim, version, askedBy, tries }: KeptDeletion): SoftDeletion {
  return { serverUuid, aim, version, askedBy, tries };
}
