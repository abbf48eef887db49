import { Counter, type Registry } from "prom-client";
import { QuickHistogram } from "../../adapters/telemetry/quick-histogram.ts";
import { systemClock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import { RepeatedLogs } from "../../runtime/repeated-logs.ts";
import { failureText } from "./failure-text.ts";

const SECONDS_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

const MALFORMED_LOG_MS = 30_000;
const DASHBOARD_LOG_MS = 60_000;

/** Events of the api that an operator may want to know. Each has a counter, and those that need attention also write a log line. */
export class ApiEvents {
  readonly #repeated = new RepeatedLogs(systemClock);
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
    this.#logger.debug({ server: serverUuid }, "a request to delete a server was accepted");
  }

  deleteLeftToSweep(serverUuid: string, cell: string): void {
    this.#logger.warn(
      { server: serverUuid, cell },
      "the server's cell could not be told to delete it; the schedulers' sweep will tell the cell",
    );
  }

  publishFailed(serverUuid: string, error: unknown): void {
    this.#publishFailures.inc();
    this.#logger.warn(
      { server: serverUuid, err: error },
      "the message about new work for a server could not be published; a sweep will find the work in the database",
    );
  }

  markFailed(serverUuid: string, error: unknown): void {
    this.#logger.warn(
      { server: serverUuid, err: error },
      "the API database could not record that a server was deleted; it is tried again",
    );
  }

  /** Logged twice a minute for each cell at most, because a compromised cell could fill the log. */
  eventMalformed(cell: string): void {
    this.#repeated.log(
      `malformed events of cell ${cell}`,
      () =>
        this.#logger.warn(
          { cell },
          "an event from a cell could not be read and was dropped; this is logged every half minute at most",
        ),
      MALFORMED_LOG_MS,
    );
  }

  cellUnwatched(cell: string, error: unknown): void {
    this.#logger.warn({ cell, err: error }, "the events of a cell cannot be read yet; the api keeps trying");
  }

  streamsMissing(error: unknown): void {
    this.#logger.warn(
      { err: error },
      "the NATS streams of the API tier could not be created; until they exist, sweeps find the requests that could not be published",
    );
  }

  /** Starts the cell's failure counter at 0, because a rate ignores the first value of a series, which would otherwise be a failure. */
  cellKnown(cell: string): void {
    this.#unreachable.inc({ cell }, 0);
  }

  cellUnreachable(cell: string, error: unknown): void {
    this.#unreachable.inc({ cell });
    this.#logger.warn({ cell, err: error }, "a cell does not answer");
  }

  hostsSynced(hosts: number): void {
    this.#logger.info({ hosts }, "the aggregates and allocation ratios of hosts were written to their cells");
  }

  syncFailed(error: unknown): void {
    this.#logger.warn(
      { err: error },
      "the aggregates and allocation ratios of hosts could not be compared with the cells; they are compared again soon",
    );
  }

  externalEvent(
    {
      name,
      tag = "",
      server_uuid: server,
    }: { readonly name: string; readonly tag?: string; readonly server_uuid: string },
    host: string,
  ): void {
    this.#logger.info({ event: name, tag, server, host }, "another OpenStack service reported an event of a server");
  }

  portsNotSwept(error: unknown): void {
    this.#logger.warn({ err: error }, "the ports of deleted servers could not be released; it is tried again soon");
  }

  settlingFailed(error: unknown): void {
    this.#logger.warn({ err: error }, "the resizes that count for quotas could not be settled; it is tried again soon");
  }

  limitsUnknown(error: unknown): void {
    this.#logger.warn(
      { err: error },
      "Keystone's limits of projects cannot be read, so calls that count against them are refused; this service's user needs the role reader on the system",
    );
  }

  softDeletionDelayed(server: string, error: unknown): void {
    this.#logger.warn(
      { err: error, server },
      "a soft deletion or its restoring could not be continued; it is tried again soon",
    );
  }

  softDeletionsNotSettled(error: unknown): void {
    this.#logger.warn({ err: error }, "soft deletions could not be continued; it is tried again soon");
  }

  /** The cell could not start the server in any of the tries. */
  restoreAbandoned(server: string): void {
    this.#logger.warn(
      { server },
      "a server could not be restored, and stays deleted softly; its instance actions have the reason",
    );
  }

  snapshotsNotSettled(error: unknown): void {
    this.#logger.warn(
      { err: error },
      "the state of images that are made from servers could not be brought up to date; it is tried again soon",
    );
  }

  /** An image of a server could not be given to the image service, and was removed. */
  snapshotLost(image: string, reason: string): void {
    this.#logger.error({ image, reason }, "the image of a server could not be uploaded, so it was removed");
  }

  imageFetched(image: string): void {
    this.#logger.info({ image }, "the data of an image were fetched into the directory of images");
  }

  imageNotFetched(image: string | null, error: unknown): void {
    this.#logger.warn(
      { ...(image !== null && { image }), err: error },
      "the data of an image could not be fetched into the directory of images; it is tried again soon",
    );
  }

  imageRefused(image: string, reason: string): void {
    this.#logger.error({ image, reason }, "the data of an image cannot be used, so servers of it fail");
  }

  volumesNotSettled(error: unknown): void {
    this.#logger.warn(
      { err: error },
      "volumes could not be brought up to date with the servers that have them; it is tried again soon",
    );
  }

  volumeLeftInDoubt(
    {
      serverUuid,
      volume,
    }: { readonly serverUuid: string; readonly volume: { readonly volumeId: string; readonly replacedBy: string } },
    why: string,
  ): void {
    this.#logger.error(
      { server: serverUuid, volume: volume.volumeId, replacedBy: volume.replacedBy, why },
      "a server is gone, and the replacement of its volume has not ended in Cinder: look into both volumes before you end the migration there",
    );
  }

  volumeStillFilled({ volumeId, serverUuid }: { readonly volumeId: string; readonly serverUuid: string }): void {
    this.#logger.error(
      { volume: volumeId, server: serverUuid },
      "Cinder has been filling the boot volume of a server that is gone for an hour. The volume stays reserved for that server meanwhile, because Cinder would otherwise write over what its next owner stores. Look into the log of Cinder's volume service. Only when Cinder surely no longer writes to the volume, run 'openstack volume set --state available VOLUME': the volume is then given back, or deleted if it was to end with its server, within a minute or so",
    );
  }

  volumeNotExtended(
    { volumeId, serverUuid }: { readonly volumeId: string; readonly serverUuid: string },
    error: unknown,
  ): void {
    this.#logger.warn(
      { err: error, volume: volumeId, server: serverUuid },
      "a guest was not told that its volume has grown; it sees the new size at its next boot",
    );
  }

  attachmentUnknown({ volumeId, serverUuid }: { readonly volumeId: string; readonly serverUuid: string }): void {
    this.#logger.error(
      { volume: volumeId, server: serverUuid },
      "a server has a volume of Cinder that the API database does not name: the database may have been restored; Cinder's attachment is left alone",
    );
  }

  /** Logged once a minute at most, since each change of a server may fail. */
  dashboardFailed(cell: string, error: unknown): void {
    this.#repeated.log(
      "dashboard",
      () =>
        this.#logger.error(
          { cell, err: error },
          "the dashboard could not take a change of a server, and may show it wrongly; this is logged once a minute at most",
        ),
      DASHBOARD_LOG_MS,
    );
  }

  /** A request got an answer that is not its client's fault. `status` is that answer: 500 for an unexpected error, 503 for an outage or overload. */
  failed(
    request: { readonly id: string; readonly method: string; readonly url: string },
    status: number,
    error: unknown,
  ): void {
    const { id, method, url } = request;
    this.#failures.inc();
    this.#logger.error({ requestId: id, method, url, status, err: error }, failureText(status));
  }

  listening(address: string): void {
    this.#logger.info({ address }, "the api serves the Compute API");
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
