import type { TakenTask } from "../../core/stores/cell/cell-store.ts";
import {
  beginDelete,
  type DeleteEffect,
  type DeleteEvent,
  type DeleteState,
  type DeleteStep,
  stepDelete,
} from "../../core/tasks/delete-task.ts";
import { keptReason } from "../../core/tasks/failure-message.ts";
import type { Home } from "../../core/tasks/home.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import type { DestroyReport } from "../../proto/gen/berth/agent.ts";
import { EventKind } from "../../proto/gen/berth/cell.ts";
import type { Timer } from "../../runtime/clock.ts";
import type { TaskSpan } from "./ports.ts";
import type { RunPorts, TaskRun } from "./task-run.ts";

/** Carries out one delete, following `stepDelete`. Its one timer serves the grace period of a host that is not connected, or a retry. */
export class DeleteRun implements TaskRun {
  readonly tenure: Tenure;
  readonly #ports: RunPorts;
  readonly #span: TaskSpan;
  readonly #home: string | null;
  #state: DeleteState | null = null;
  #abandoned = false;
  #timer: Timer | null = null;
  #migrations: readonly string[] = [];

  constructor(taken: TakenTask, serverUuid: string, span: TaskSpan, ports: RunPorts) {
    this.tenure = { taskId: taken.task.id, serverUuid, epoch: taken.epoch };
    this.#ports = ports;
    this.#span = span;
    this.#home = taken.host;
  }

  get host(): string | null {
    return this.#state?.kind === "destroying" ? this.#state.host : null;
  }

  /** Begins to destroy the guest at the server's home, and at both hosts of an open move. */
  begin(home: Home | null): void {
    if (this.#abandoned) return;
    const places = [this.#home, home?.move?.source?.host, home?.move?.dest.host];
    this.#migrations = home?.move ? [home.move.uuid] : [];
    this.#apply(beginDelete([...new Set(places)].filter((host) => host !== null && host !== undefined)));
  }

  abandon(): void {
    if (this.#abandoned) return;
    this.#abandoned = true;
    this.#timer?.cancel();
    this.#span.end(this.#state?.kind === "ended" ? null : "another conductor continues");
  }

  hostConnected(): void {
    this.#step({ kind: "host-connected" });
  }

  hostLost(): void {
    if (this.#state?.kind === "destroying") this.#awaitHost();
  }

  reported(report: DestroyReport): void {
    if (report.host !== this.host) return;
    this.#step(
      report.failed === "" ? { kind: "destroyed" } : { kind: "destroy-failed", reason: keptReason(report.failed) },
    );
  }

  #step(event: DeleteEvent): void {
    if (this.#abandoned || this.#state === null) return;
    this.#apply(stepDelete(this.#state, event));
  }

  #apply(step: DeleteStep): void {
    const before = this.host;
    this.#state = step.state;
    if (step.state.kind !== "destroying") this.#setTimer(null);
    if (this.host !== before) this.#ports.moved(this, before);
    for (const effect of step.effects) this.#carryOut(effect);
    if (step.state.kind !== "ended") return;
    this.#ports.ended(this);
    this.#span.end(step.state.as === "deleted" ? null : step.state.as);
  }

  #carryOut(effect: DeleteEffect): void {
    const { serverUuid } = this.tenure;
    switch (effect.kind) {
      case "destroy-server":
        if (effect.delayMs === 0) this.#destroy(effect.host);
        else this.#setTimer(this.#ports.clock.setTimer(effect.delayMs, () => this.#destroy(effect.host)));
        break;
      case "commit-deleted":
        this.#ports.commits.commitDeleted({ ...this.tenure, migrations: this.#migrations, left: effect.left }).then(
          (outcome) => this.#step({ kind: outcome.kind === "committed" ? "delete-committed" : "fenced" }),
          () => this.abandon(),
        );
        break;
      case "report-leftover":
        this.#ports.events.leftBehind(serverUuid, effect.host, effect.reason);
        break;
      case "tell-deleted":
        this.#ports.events.deleted(serverUuid);
        this.#ports.tell({ kind: EventKind.EVENT_KIND_SERVER_DELETED, serverUuid, host: this.#home ?? "", reason: "" });
        break;
      default:
        effect satisfies never;
    }
  }

  #destroy(host: string): void {
    const stream = this.#ports.streamOf(host);
    if (stream === null) {
      this.#awaitHost();
      return;
    }
    const value = { host, serverUuid: this.tenure.serverUuid, attemptId: "" };
    stream.send({ body: { $case: "destroy", value } });
    // An agent answers within its driver's deadline, so an agent that does not is treated like one that failed.
    const silence = this.#ports.clock.setTimer(DESTROY_ANSWER_MS, () =>
      this.#step({ kind: "destroy-failed", reason: "the agent did not answer" }),
    );
    this.#setTimer(silence);
  }

  #awaitHost(): void {
    const { clock, settings } = this.#ports;
    this.#setTimer(clock.setTimer(settings.hostGraceMs, () => this.#leaveHost()));
  }

  /**
   * Acts when the grace period is over: releases the task to a conductor that has the host connected. A host that is not down may still run
   * the guest, so the guest's allocation is kept until the host is down.
   */
  #leaveHost(): void {
    const { clock, releaser } = this.#ports;
    const host = this.host;
    if (host === null) return;
    const timer = this.#timer;
    releaser.tryRelease(this.tenure, host, Number.POSITIVE_INFINITY).then(
      (unreached) => {
        if (unreached === "released" && !this.#abandoned) {
          this.#ports.ended(this);
          this.abandon();
        } else if (this.#timer === timer && unreached === "down") this.#step({ kind: "host-gone" });
        else if (this.#timer === timer && unreached === "fenced") this.#step({ kind: "host-fenced" });
        else if (this.#timer === timer) this.#setTimer(clock.setTimer(LOOK_AGAIN_MS, () => this.#leaveHost()));
      },
      () => this.abandon(),
    );
  }

  #setTimer(timer: Timer | null): void {
    this.#timer?.cancel();
    this.#timer = timer;
  }
}

/** Pause between two looks at a host that is up but that no conductor could be found for. */
const LOOK_AGAIN_MS = 500;
const DESTROY_ANSWER_MS = 90_000;
