import { randomUUID } from "node:crypto";
import type { FoundGuest } from "../../core/tasks/guest-fate.ts";
import { planOperation } from "../../core/tasks/plan-operation.ts";
import type { Server } from "../../core/tasks/server.ts";
import type { ServerVolume, VolumeFile } from "../../proto/gen/berth/shared.ts";
import type { ConductorEvents } from "./events.ts";
import type { FoundKnowledge, GuestJudge } from "./guest-judge.ts";
import type { GuestLooker } from "./guest-looker.ts";
import type { ConductorStore } from "./ports.ts";
import type { StepCommitter } from "./step-committer.ts";

/**
 * Begins a snapshot of a volume again whose host has done its part, where the cell's database was restored to a moment before it: the host reports that the guest writes to the snapshot's
 * file, and the server's spec names another one or none. Cinder may still wait for the host's part, and then hears of it; or it has made the snapshot; or it has given it up, and then the
 * guest goes back to its former file. From the beginning of the operation the spec names the guest's file, so no other guest of the server starts without it. No message is sent for
 * the task, so a sweep takes it.
 */
export class SnapshotResumer {
  readonly #store: Pick<ConductorStore, "servers" | "holdings" | "begin">;
  readonly #judge: Pick<GuestJudge, "isBesideQuarantined">;
  readonly #looker: Pick<GuestLooker, "look">;
  readonly #commits: StepCommitter;
  readonly #events: ConductorEvents;

  constructor(options: {
    readonly store: Pick<ConductorStore, "servers" | "holdings" | "begin">;
    readonly judge: Pick<GuestJudge, "isBesideQuarantined">;
    readonly looker: Pick<GuestLooker, "look">;
    readonly commits: StepCommitter;
    readonly events: ConductorEvents;
  }) {
    this.#store = options.store;
    this.#judge = options.judge;
    this.#looker = options.looker;
    this.#commits = options.commits;
    this.#events = options.events;
  }

  /**
   * Only for a guest that runs or is paused, since no other host has a newer one of its server then (law 4). The host is asked again after the server was read, and the operation begins
   * only if the server is unchanged since, so a report from before another snapshot begins nothing. Returns whether nothing is left to do: false if the next comparison has to look again.
   * Rejects when the conductor stops.
   */
  async resume(guest: FoundGuest, found: FoundKnowledge): Promise<boolean> {
    const uuid = guest.serverUuid;
    const [server] = await this.#commits.insist("servers", () => this.#store.servers([uuid]));
    if (server === undefined || server.host !== guest.host || server.attemptId !== guest.attemptId) return true;
    if (forgottenFile(server, found) === null) return true;
    const [holding] = await this.#commits.insist("holdings", () => this.#store.holdings([uuid]));
    const look = await this.#looker.look(guest);
    if (look.kind === "silent") return false;
    if (look.kind !== "found" || (look.state !== "running" && look.state !== "paused")) return true;
    if (await this.#judge.isBesideQuarantined(guest)) return true;
    const forgotten = forgottenFile(server, look);
    if (forgotten === null) return true;
    const { file } = forgotten;
    const planned = planOperation({
      ...{ taskId: randomUUID(), kind: "resume-snapshot", server, holding: holding ?? null },
      volume: forgotten,
      snapshot: { snapshotId: snapshotIdOf(file) ?? "", newFile: file, fileToMerge: "", mergeTarget: "" },
    });
    if (planned.kind !== "planned") return planned.kind !== "busy";
    const [outcome] = await this.#commits.insist("begin", () => this.#store.begin([planned.begin]));
    if (outcome?.kind === "begun") this.#events.snapshotResumed(guest, file);
    return outcome?.kind === "begun";
  }
}

/**
 * The volume whose file the database has forgotten, with that file. A database that names no file knows of none; one that names another file is behind the guest only if the guest has obeyed a
 * later order than it knows of. Otherwise the guest is behind, since its host was forced down meanwhile.
 */
function forgottenFile(
  { spec, revision }: Server,
  found: { readonly revision: number; readonly files?: readonly VolumeFile[] },
): ServerVolume | null {
  for (const volume of spec.volumes) {
    const file = found.files?.find(({ volumeId }) => volumeId === volume.volumeId)?.file ?? "";
    if (file === "" || file === volume.file || snapshotIdOf(file) === null) continue;
    if (!volume.inCinder || volume.replacedBy !== "") continue;
    if (volume.file === "" || found.revision > revision) return { ...volume, file };
  }
  return null;
}

/** Cinder's drivers for shared file systems name the file of a snapshot after the volume's first file and the snapshot's id. */
const snapshotIdOf = (file: string): string | null => /^[\w.-]{1,200}\.([\da-f-]{36})$/.exec(file)?.[1] ?? null;
