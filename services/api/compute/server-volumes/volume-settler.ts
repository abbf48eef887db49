import type { VolumeRecord } from "../../../../core/stores/api/volume-store.ts";
import { owedReplacement } from "../../../../core/tasks/owed-replacement.ts";
import type { Server } from "../../../../core/tasks/server.ts";
import type { Clock } from "../../../../runtime/clock.ts";
import { Ticker } from "../../../../runtime/ticker.ts";
import type { CellClient } from "../../cells/cell-client.ts";
import type { Cells } from "../../cells/hydrate-servers.ts";
import type { ApiEvents } from "../../events.ts";
import { PagedRounds } from "../../paged-rounds.ts";
import { closeAttachment } from "./close-attachment.ts";
import { type CellLook, judgeAttachment } from "./judge-attachment.ts";
import { hasNeverRun } from "./judge-building.ts";
import { PatientEnds } from "./patient-ends.ts";
import type { SettledVolumes } from "./server-volumes.ts";
import { type BuildingDeps, isBuilding, settleBuilding, type UnsettledVolume } from "./settle-building.ts";

/**
 * How often volumes of servers that are gone are looked for, and how many are looked at. An api that hears of a server's end ends its
 * attachments at once. This sweep ends those whose api died before it could.
 */
const SWEEP_MS = 5_000;
const SWEPT_MAX = 1_000;

/** What is known of the tasks of a server whose volume cannot have been replaced. */
const NO_TASKS = { kind: "answer", value: [] } as const;

type SettlerEvents = Pick<ApiEvents, "volumesNotSettled" | "volumeLeftInDoubt">;

/**
 * Brings volumes up to date with the cells of their servers. Attaching and detaching end in a cell, which does not report it, and so does the life of a
 * server's last guest. So each volume that waits for that is looked at until its cell says what has become of it (`judgeAttachment`, and `judgeBuilding` for the volumes of new servers). A cell that does not
 * answer changes nothing. Every step may be repeated, so any number of apis may do this at a time.
 *
 * An operation that no cell has begun is left alone for `settleMs`, which is longer than the call that planned it may take.
 */
export class VolumeSettler {
  readonly #volumes: SettledVolumes;
  readonly #store: BuildingDeps["store"];
  readonly #cells: Cells;
  readonly #clock: Clock;
  readonly #settleMs: number;
  readonly #ticker: Ticker;
  readonly #rounds: PagedRounds<VolumeRecord>;
  readonly #ends: PatientEnds;
  readonly #events: SettlerEvents;
  #sweptAtMs = Number.NEGATIVE_INFINITY;
  #sweptTo: string | null = null;

  constructor(
    deps: {
      readonly volumes: SettledVolumes;
      readonly store: BuildingDeps["store"];
      readonly cells: Cells;
      readonly events: SettlerEvents;
      readonly clock: Clock;
    },
    options: { readonly pollMs: number; readonly settleMs: number },
  ) {
    this.#volumes = deps.volumes;
    this.#store = deps.store;
    this.#rounds = new PagedRounds((after, limit) => deps.volumes.unsettled(after, limit));
    this.#cells = deps.cells;
    this.#clock = deps.clock;
    this.#settleMs = options.settleMs;
    this.#ends = new PatientEnds(deps);
    this.#events = deps.events;
    this.#ticker = new Ticker({
      clock: deps.clock,
      pauseMs: options.pollMs,
      work: () => this.settle(),
      onError: (error) => deps.events.volumesNotSettled(error),
    });
  }

  start(): void {
    this.#ticker.start();
  }

  async stop(): Promise<void> {
    await this.#ticker.stop();
    await this.#ends.stop();
  }

  /** Looks at the volumes that wait for their cells. Rejects as the API database does. */
  async settle(): Promise<void> {
    if (this.#clock.monotonic() - this.#sweptAtMs >= SWEEP_MS) {
      const { next } = await this.#volumes.sweepEnded({ after: this.#sweptTo, limit: SWEPT_MAX });
      this.#sweptTo = next;
      this.#sweptAtMs = this.#clock.monotonic();
    }
    this.#ends.beginRound();
    await this.#rounds.run(async (page) => {
      const unsettled = page.filter(isUnsettled);
      await this.#settleBuilding(unsettled.filter(isBuilding));
      const others = unsettled.filter((volume) => !isBuilding(volume));
      const byCell = Map.groupBy(others, ({ attachment }) => attachment.cell);
      await Promise.all(Array.from(byCell, ([cell, volumes]) => this.#settleIn(this.#cells.get(cell), volumes)));
    });
  }

  #settleBuilding(volumes: readonly UnsettledVolume[]): Promise<void> {
    const deps = { volumes: this.#ends, store: this.#store, cells: this.#cells };
    return settleBuilding(deps, volumes, { nowMs: this.#clock.now(), settleMs: this.#settleMs });
  }

  async #settleIn(cell: CellClient | undefined, volumes: readonly UnsettledVolume[]): Promise<void> {
    const servers = [...new Set(volumes.map(({ attachment }) => attachment.serverUuid))];
    const tasks = volumes.flatMap(({ attachment }) => attachment.taskId ?? []);
    const answer = await cell?.operations(async (store) => ({
      outcomes: await store.outcomes(tasks),
      servers: await store.servers(servers),
      left: await store.guestsLeft(servers),
    }));
    if (cell === undefined || answer?.kind !== "answer") return;
    const outcomes = new Map(tasks.map((id, at) => [id, answer.value.outcomes[at] ?? null]));
    const byUuid = new Map(answer.value.servers.map((server) => [server.uuid, server]));
    const left = new Set(servers.filter((_, at) => answer.value.left[at]));
    for (const volume of volumes) {
      const { serverUuid, taskId } = volume.attachment;
      const look = {
        outcome: taskId === null ? null : (outcomes.get(taskId) ?? null),
        server: byUuid.get(serverUuid) ?? null,
        guestLeft: left.has(serverUuid),
      };
      await this.#settleOne(cell, volume, look);
    }
  }

  async #settleOne(
    cell: CellClient,
    volume: UnsettledVolume,
    look: CellLook & { readonly server: Server | null },
  ): Promise<void> {
    const { id, attachment } = volume;
    const { taskId } = attachment;
    const verdict = judgeAttachment(id, attachment, look, attachment.phaseAgeMs > this.#settleMs);
    switch (verdict) {
      case "wait":
        return;
      case "end":
        await this.#end(cell, volume, look.server);
        return;
      case "close":
        await closeAttachment(this.#ends, cell, volume, this.#clock.now(), { isRefused: false });
        return;
      case "attached":
        if (taskId !== null) await this.#volumes.confirmAttached(id, taskId, this.#clock.now());
        return;
      case "release":
        if (taskId !== null) await this.#ends.release(id, taskId);
        return;
      default:
        verdict satisfies never;
    }
  }

  /**
   * Ends the attachment of a server that is gone. If the delete has broken off the replacement of the volume, Cinder is told first how that has ended: without that, the
   * user would get the volume with its former content, or one that Cinder migrates for ever. If nobody knows how it has ended, Cinder is told nothing, and keeps both volumes.
   */
  async #end(cell: CellClient, { id, inCinder, attachment }: UnsettledVolume, server: Server | null): Promise<void> {
    const { attachmentId, serverUuid } = attachment;
    const neverRan = hasNeverRun(server);
    const tasks = inCinder && !neverRan ? await cell.operations((store) => store.tasksOf(serverUuid)) : NO_TASKS;
    if (tasks.kind !== "answer") return;
    const inDoubt = server?.spec.volumes.find(({ volumeId, replacedBy }) => volumeId === id && replacedBy !== "");
    const owed = owedReplacement(tasks.value, id, inDoubt);
    if (owed === null) {
      await this.#ends.endAttachment(id, attachmentId, neverRan);
      return;
    }
    const { volume, end, hasLeft = false } = owed;
    if (end !== null) {
      await this.#ends.endReplaced(id, attachmentId, { serverUuid, volume, end, hasLeft });
      return;
    }
    const hasEnded = (await this.#ends.endAttachment(id, attachmentId, false)) !== null;
    if (hasEnded)
      this.#events.volumeLeftInDoubt({ serverUuid, volume }, "the server was deleted before its host said it");
  }
}

const isUnsettled = (volume: VolumeRecord): volume is UnsettledVolume => volume.attachment !== null;
