import { Counter, Gauge, type Registry } from "prom-client";
import { QuickHistogram } from "../../adapters/telemetry/quick-histogram.ts";
import type { SearchLimit } from "../../core/candidates/search-budget.ts";
import type { DecisionStage } from "../../core/scheduling/stage-watch.ts";
import type { SchedulerFigures } from "../../core/stores/scheduler-figures.ts";
import type { MoveRequest } from "../../proto/gen/berth/scheduler.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import { RepeatedLogs } from "../../runtime/repeated-logs.ts";

/** Statistics of the host rankings that a scheduler keeps, one for each class of requests. */
interface KeptRankings {
  readonly size: number;
  readonly memoryBytes: number;
}

/** One method for each thing that is worth telling an operator. Each writes a log line, raises a counter, or both. */
export class SchedulerEvents {
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #metrics: ReturnType<typeof createMetrics>;
  /** Faults that many requests may meet at once. Each occurrence is counted all the same. */
  readonly #repeated: RepeatedLogs;
  readonly #done = { placed: 0, refused: 0, racesLost: 0, taken: 0, queuedMs: 0 };

  constructor(options: {
    readonly logger: Logger;
    readonly registry: Registry;
    readonly clock: Clock;
    readonly claimsInFlight: () => number;
    readonly requestsInFlight: () => number;
    readonly rankings: KeptRankings;
  }) {
    this.#logger = options.logger;
    this.#clock = options.clock;
    this.#repeated = new RepeatedLogs(options.clock);
    this.#metrics = createMetrics(options.registry, options);
  }

  /** What this scheduler has done since it started, for dashboards. */
  figures(): SchedulerFigures {
    return { at: this.#clock.now(), ...this.#done };
  }

  decided(decision: {
    readonly outcome: "chosen" | "none";
    readonly tookMs: number;
    readonly stagesMs: ReadonlyMap<DecisionStage, number>;
    /** Number of hosts that were checked for whether the request fits there. */
    readonly lookedAt: number;
  }): void {
    this.#metrics.decisions.inc({ outcome: decision.outcome });
    this.#metrics.decisionSeconds.observe(decision.tookMs / 1_000);
    this.#metrics.candidatesTried.observe(decision.lookedAt);
    for (const [stage, ms] of decision.stagesMs) this.#metrics.stageSeconds.observe(ms / 1_000, { stage });
  }

  /** Counts a search that reached its limit before it was known whether the request fits anywhere. */
  searchGivenUp(serverUuid: string, limit: SearchLimit, steps: number): void {
    this.#metrics.searchesGivenUp.inc({ limit });
    this.#logger.warn(
      { server: serverUuid, limit, steps },
      "the search for a host was given up: the request groups are too hard to combine",
    );
  }

  /** Records how long a claim took, whatever its outcome. */
  claimed(tookMs: number): void {
    this.#metrics.stageSeconds.observe(tookMs / 1_000, { stage: "claim" });
  }

  /** Records how long a request waited between its acceptance and the first time it was taken. */
  taken(queuedMs: number): void {
    this.#done.taken += 1;
    this.#done.queuedMs += Math.max(0, queuedMs);
    this.#metrics.queueSeconds.observe(Math.max(0, queuedMs) / 1_000);
  }

  dispatched(serverUuid: string, cell: string, host: string, ageMs: number, traceId = ""): void {
    this.#done.placed += 1;
    this.#metrics.placed.inc({ outcome: "dispatched" });
    this.#metrics.placeSeconds.observe(Math.max(0, ageMs) / 1_000, {}, traceId);
    this.#logger.debug({ server: serverUuid, cell, host, ageMs }, "a request was dispatched to a cell");
  }

  foundPresent(serverUuid: string, cell: string): void {
    this.#metrics.placed.inc({ outcome: "present" });
    this.#logger.info({ server: serverUuid, cell }, "a request was delivered twice and is already dispatched");
  }

  foundEnded(serverUuid: string): void {
    this.#metrics.placed.inc({ outcome: "ended" });
    this.#logger.debug({ server: serverUuid }, "a request ended before it was placed");
  }

  refused(serverUuid: string, fault: string): void {
    this.#done.refused += 1;
    this.#metrics.placed.inc({ outcome: "refused" });
    this.#logger.info(
      { server: serverUuid, fault },
      "no valid host was found for a request, and its server is in ERROR",
    );
  }

  moveBegun({ serverUuid, kind, createdAtMs }: MoveRequest, host: string): void {
    this.#done.placed += 1;
    this.#metrics.moves.inc({ outcome: "begun" });
    this.#logger.debug({ server: serverUuid, kind, host, askedAtMs: createdAtMs }, "a move has begun");
  }

  moveRefused({ serverUuid, kind }: MoveRequest, fault: string): void {
    this.#done.refused += 1;
    this.#metrics.moves.inc({ outcome: "refused" });
    this.#logger.info({ server: serverUuid, kind, fault }, "a move was refused; the server stays as it is");
  }

  putOff(serverUuid: string, why: string): void {
    this.#metrics.placed.inc({ outcome: "later" });
    this.#repeated.log("later", () =>
      this.#logger.warn({ server: serverUuid, why }, "a request cannot be placed yet and is tried again later"),
    );
  }

  placingFailed(serverUuid: string, error: unknown): void {
    this.#metrics.placed.inc({ outcome: "failed" });
    this.#repeated.log("failed", () =>
      this.#logger.error(
        { server: serverUuid, err: error },
        "placing a request failed with an unexpected error; it is tried again later",
      ),
    );
  }

  gaveUp(serverUuid: string, error: unknown): void {
    this.#logger.error(
      { server: serverUuid, err: error },
      "placing a request kept failing with unexpected errors, so it is given up",
    );
  }

  raceLost(serverUuid: string, cell: string, host: string, why: string): void {
    this.#done.racesLost += 1;
    this.#metrics.racesLost.inc();
    this.#logger.debug(
      { server: serverUuid, cell, host, why },
      "a claim was refused, because the host had changed since the scheduler's view of it",
    );
  }

  lookedAgain(serverUuid: string): void {
    this.#metrics.secondLooks.inc();
    this.#logger.debug(
      { server: serverUuid },
      "no host was found in the ledger view; the scheduler searches again in a fresh one",
    );
  }

  multiCreateRefused(reservation: string, found: number, wanted: number): void {
    this.#logger.info(
      { reservation, found, wanted },
      "too few servers of one request found a host, so the claims of all of them are released",
    );
  }

  leftCell(serverUuid: string, cell: string): void {
    this.#metrics.cellsLeft.inc();
    this.#logger.info({ server: serverUuid, cell }, "a request left the cell to which it was assigned");
  }

  publishFailed(taskId: string, cell: string, error: unknown): void {
    this.#metrics.publishFailures.inc();
    this.#repeated.log(`publish ${cell}`, () =>
      this.#logger.warn(
        { task: taskId, cell, err: error },
        "a task was not published; a sweep of the cell's conductors will find it",
      ),
    );
  }

  queueRefused(error: unknown): void {
    this.#logger.error(
      { err: error },
      "the queue of requests in NATS cannot be read; until it can, only sweeps find requests",
    );
  }

  malformed(error: unknown): void {
    this.#logger.error({ err: error }, "a message of the queue of requests cannot be read and was dropped");
  }

  swept(requests: number, deletes: number): void {
    this.#metrics.swept.inc(requests + deletes);
    this.#logger.info(
      { requests, deletes },
      "the sweep found requests that no scheduler was working on, and places them",
    );
  }

  foundLost(cell: string, requests: number): void {
    this.#metrics.swept.inc(requests);
    this.#logger.warn(
      { cell, requests },
      "requests never arrived in the cell to which they were dispatched; they are placed again",
    );
  }

  sweepFailed(error: unknown): void {
    this.#repeated.log("sweep", () =>
      this.#logger.error({ err: error }, "the sweep for forgotten requests failed; it is repeated soon"),
    );
  }

  cellOpened(cell: string): void {
    this.#logger.info({ cell }, "the scheduler now follows a cell");
  }

  cellRemoved(cell: string): void {
    this.#logger.info({ cell }, "the scheduler no longer follows a cell, because its record was removed");
  }

  cellNotClosed(cell: string, error: unknown): void {
    this.#logger.warn({ cell, err: error }, "a connection to a cell that the scheduler has left could not be closed");
  }

  cellUnreachable(cell: string, error: unknown): void {
    this.#repeated.log(`cell ${cell}`, () =>
      this.#logger.warn(
        { cell, err: error },
        "a cell cannot be reached; the scheduler places nothing there until it answers",
      ),
    );
  }

  /** The cell's database refused to write claims, and nothing was written. */
  writeRefused(cell: string, why: string): void {
    this.#repeated.log(`writes of cell ${cell}`, () =>
      this.#logger.error(
        { cell, why },
        "a cell's database refuses to write; the scheduler places new servers in other cells until it writes again. If its disk is full, free space there",
      ),
    );
  }

  /** Counts decisions that were not kept, so that nobody can ask for their explanation later. */
  decisionsDropped(decisions: number): void {
    this.#metrics.decisionsDropped.inc(decisions);
  }

  settingsApplied(version: number): void {
    this.#metrics.settingsVersion.set(version);
    this.#logger.info({ version }, "changed settings are in force");
  }

  settingsRefused(version: number, reasons: readonly string[]): void {
    this.#logger.error(
      { version, reasons },
      "the stored settings cannot be read, and the previous ones stay in force: correct them with berth settings set",
    );
  }

  refreshFailed(what: string, error: unknown): void {
    this.#repeated.log(`refresh ${what}`, () =>
      this.#logger.warn(
        { what, err: error },
        `the scheduler could not read or store this data: ${what}. It tries again soon`,
      ),
    );
  }
}

interface GaugeReads {
  readonly claimsInFlight: () => number;
  readonly requestsInFlight: () => number;
  readonly rankings: KeptRankings;
}

function createMetrics(registry: Registry, read: GaugeReads) {
  const registers = [registry];
  const counter = <Label extends string = never>(name: string, help: string, labelNames: Label[] = []) =>
    new Counter<Label>({ name: `berth_scheduler_${name}`, help, labelNames, registers });
  const gauge = (name: string, help: string, value: () => number) =>
    new Gauge({
      name: `berth_scheduler_${name}`,
      help,
      registers,
      collect() {
        this.set(value());
      },
    });
  gauge("claims_in_flight", "claims that the views do not show yet", read.claimsInFlight);
  gauge("requests_in_flight", "requests that are being placed", read.requestsInFlight);
  gauge("rankings", "classes of requests whose ranked hosts are kept", () => read.rankings.size);
  gauge("rankings_bytes", "memory of the kept rankings", () => read.rankings.memoryBytes);
  return {
    settingsVersion: new Gauge({
      name: "berth_scheduler_settings_version",
      help: "version of the stored settings that decisions use",
      registers,
    }),
    placed: counter("requests_total", "requests that were placed or tried, by outcome", ["outcome"]),
    moves: counter("moves_total", "moves of servers that were placed or tried, by outcome", ["outcome"]),
    racesLost: counter("races_lost_total", "claims that no longer fitted"),
    secondLooks: counter("second_looks_total", "searches repeated on a fresh view before a refusal"),
    cellsLeft: counter("cells_left_total", "requests that left their assigned cell"),
    decisionsDropped: counter("decisions_dropped_total", "decisions that were not kept, because there were too many"),
    publishFailures: counter("publish_failures_total", "tasks that were stored and not published"),
    swept: counter("swept_total", "requests that the sweep found"),
    decisions: counter("decisions_total", "choices of host and alternates, by outcome", ["outcome"]),
    searchesGivenUp: counter(
      "searches_given_up_total",
      "decisions whose request groups were too hard to combine, by the limit that ended the search (steps, time)",
      ["limit"],
    ),
    candidatesTried: new QuickHistogram({
      name: "berth_scheduler_candidates_tried",
      help: "hosts that one choice examined for the request, alternates included",
      buckets: [1, 2, 3, 5, 8, 13, 21, 34, 100, 1_000],
      registers,
    }),
    stageSeconds: new QuickHistogram({
      name: "berth_scheduler_stage_seconds",
      help: "duration of each stage of a choice (prefilter, filter, weigh, combine, alternates), and of its claim",
      labelNames: ["stage"] as const,
      buckets: [0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 1],
      registers,
    }),
    queueSeconds: new QuickHistogram({
      name: "berth_scheduler_queue_age_seconds",
      help: "age of a request when it was first taken from the queue",
      buckets: [0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3, 10, 60],
      registers,
    }),
    decisionSeconds: new QuickHistogram({
      name: "berth_scheduler_decision_seconds",
      help: "duration of one choice of host and alternates",
      buckets: [0.00005, 0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.05],
      registers,
    }),
    placeSeconds: new QuickHistogram({
      name: "berth_scheduler_place_seconds",
      help: "from accepted to dispatched",
      buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30],
      registers,
    }),
  };
}
