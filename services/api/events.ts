import { Counter, type Registry } from "prom-client";
import { QuickHistogram } from "../../adapters/telemetry/quick-histogram.ts";
import type { Logger } from "../../runtime/logger.ts";

const SECONDS_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Events of the api that an operator may want to know. Each has a counter, and those that need attention also write a log line. */
export class ApiEvents {
  readonly #logger: Logger;
  readonly #requestSeconds: QuickHistogram<"method" | "route" | "status">;
  readonly #accepted: Counter;
  readonly #deletes: Counter;
  readonly #publishFailures: Counter;
  readonly #unreachable: Counter<"cell">;
  readonly #failures: Counter;

  constructor(logger: Logger, registry: Registry) {
    const registers = [registry];
    this.#logger = logger;
    this.#requestSeconds = new QuickHistogram({
      name: "berth_api_request_seconds",
      help: "Time from a request to the end of its answer",
      labelNames: ["method", "route", "status"],
      buckets: SECONDS_BUCKETS,
      registers,
    });
    this.#accepted = new Counter({
      name: "berth_api_servers_accepted_total",
      help: "Accepted servers",
      registers,
    });
    this.#deletes = new Counter({
      name: "berth_api_deletes_accepted_total",
      help: "Deletes that were accepted",
      registers,
    });
    this.#publishFailures = new Counter({
      name: "berth_api_publish_failures_total",
      help: "Messages that could not be published; a sweep finds their requests",
      registers,
    });
    this.#unreachable = new Counter({
      name: "berth_api_cell_unreachable_total",
      help: "Calls that a cell did not answer in time",
      labelNames: ["cell"],
      registers,
    });
    this.#failures = new Counter({
      name: "berth_api_failures_total",
      help: "Answers with 5xx because of an error of this process or its databases",
      registers,
    });
  }

  answered(method: string, route: string, status: number, elapsedMs: number, traceId = ""): void {
    const labels = { method, route, status: STATUS_TEXTS[status] ?? String(status) };
    this.#requestSeconds.observe(elapsedMs / 1000, labels, traceId);
  }

  accepted(servers: number): void {
    this.#accepted.inc(servers);
  }

  deleteAccepted(serverUuid: string): void {
    this.#deletes.inc();
    this.#logger.debug({ server: serverUuid }, "delete accepted");
  }

  deleteLeftToSweep(serverUuid: string, cell: string): void {
    this.#logger.warn(
      { server: serverUuid, cell },
      "the cell could not be notified of a delete; the schedulers' sweep will do it",
    );
  }

  publishFailed(serverUuid: string, error: unknown): void {
    this.#publishFailures.inc();
    this.#logger.warn({ server: serverUuid, err: error }, "not published; a sweep will find it");
  }

  markFailed(serverUuid: string, error: unknown): void {
    this.#logger.warn({ server: serverUuid, err: error }, "could not record that the server is gone");
  }

  eventMalformed(cell: string): void {
    this.#logger.warn({ cell }, "a cell's event could not be read and was dropped");
  }

  cellUnwatched(cell: string, error: unknown): void {
    this.#logger.warn({ cell, err: error }, "the cell's events cannot be read yet; trying again");
  }

  streamsMissing(error: unknown): void {
    this.#logger.warn(
      { err: error },
      "the streams of the API tier could not be created; a sweep finds unpublished requests",
    );
  }

  /** Starts the cell's failure counter at 0, because a rate ignores the first value of a series, which would otherwise be a failure. */
  cellKnown(cell: string): void {
    this.#unreachable.inc({ cell }, 0);
  }

  cellUnreachable(cell: string, error: unknown): void {
    this.#unreachable.inc({ cell });
    this.#logger.warn({ cell, err: error }, "the cell does not answer");
  }

  hostsSynced(hosts: number): void {
    this.#logger.info({ hosts }, "aggregates and ratios written to hosts' cells");
  }

  syncFailed(error: unknown): void {
    this.#logger.warn({ err: error }, "could not compare aggregates and ratios with the cells; trying again");
  }

  externalEvent(
    {
      name,
      tag = "",
      server_uuid: server,
    }: { readonly name: string; readonly tag?: string; readonly server_uuid: string },
    host: string,
  ): void {
    this.#logger.info({ event: name, tag, server, host }, "another service reported an event of a server");
  }

  portsNotSwept(error: unknown): void {
    this.#logger.warn({ err: error }, "could not give up the ports of servers that are gone; trying again");
  }

  settlingFailed(error: unknown): void {
    this.#logger.warn({ err: error }, "could not read the resizes that count for quotas; trying again");
  }

  snapshotsNotSettled(error: unknown): void {
    this.#logger.warn({ err: error }, "could not end the making of images from servers; trying again");
  }

  failed(requestId: string, method: string, url: string, error: unknown): void {
    this.#failures.inc();
    this.#logger.error({ requestId, method, url, err: error }, "request failed");
  }

  listening(address: string): void {
    this.#logger.info({ address }, "serving the Compute API");
  }
}

/** The texts of common status codes for metric labels, kept so that no string is allocated for each answer. */
const STATUS_TEXTS: Readonly<Record<number, string>> = {
  200: "200",
  202: "202",
  204: "204",
  400: "400",
  404: "404",
  409: "409",
};
