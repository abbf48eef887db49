import type { BusPermissions, ConsumerName, StreamSpec } from "../../runtime/bus.ts";

/** The work queue of accepted requests, in the API tier's account. */
export const schedulerRequestsSubject = "scheduler.requests";
/** What the schedulers share the work queue by. */
export const schedulerRequestsConsumer: ConsumerName = { stream: "SCHEDULER", consumer: "schedulers" };
/** A cell's work queue of tasks; stream and consumer have the same names in each cell's account. */
export const cellTasksConsumer: ConsumerName = { stream: "TASKS", consumer: "conductors" };
/** A cell's events for the schedulers (build failures) … */
export const cellEventsForSchedulers: ConsumerName = { stream: "EVENTS", consumer: "schedulers" };
/** … and for the api (servers that are gone). */
export const cellEventsForApi: ConsumerName = { stream: "EVENTS", consumer: "api" };

/** Requests are small and many: a scheduler takes them in batches. Past this, an unanswered one goes to another scheduler. */
const requestAckWaitMs = 15_000;
/** A task's message is acknowledged as soon as its row is taken, so little time is needed. */
const taskAckWaitMs = 10_000;
const eventAckWaitMs = 10_000;
const eventMaxAgeMs = 3_600_000;
const maxAckPending = 20_000;

export function cellTasksSubject(cell: string): string {
  return `cell.${cell}.tasks`;
}

/** A task's message that has it: somebody told the operation something, and also whoever carries it out already is to take it anew. */
export const taskSignalHeader = "berth-signal";

export function cellEventsSubject(cell: string): string {
  return `cell.${cell}.events`;
}

/** Streams of the API tier's account. */
export const apiStreams: readonly StreamSpec[] = [
  {
    stream: schedulerRequestsConsumer.stream,
    subjects: [schedulerRequestsSubject],
    retention: "work",
    maxAgeMs: 0,
    consumers: [{ name: schedulerRequestsConsumer.consumer, ackWaitMs: requestAckWaitMs, maxAckPending }],
  },
];

/** Streams of one cell's account. */
export function cellStreams(cell: string): readonly StreamSpec[] {
  return [
    {
      stream: cellTasksConsumer.stream,
      subjects: [cellTasksSubject(cell)],
      retention: "work",
      maxAgeMs: 0,
      consumers: [{ name: cellTasksConsumer.consumer, ackWaitMs: taskAckWaitMs, maxAckPending }],
    },
    {
      stream: cellEventsForApi.stream,
      subjects: [cellEventsSubject(cell)],
      retention: "log",
      maxAgeMs: eventMaxAgeMs,
      consumers: [
        { name: cellEventsForSchedulers.consumer, ackWaitMs: eventAckWaitMs, maxAckPending },
        { name: cellEventsForApi.consumer, ackWaitMs: eventAckWaitMs, maxAckPending },
      ],
    },
  ];
}

/** What the API tier may do in its own account. */
export const apiPermissions: BusPermissions = {
  publish: [schedulerRequestsSubject],
  consume: [schedulerRequestsConsumer],
  ensureStreams: true,
};

/** What the API tier may do in a cell's account: send tasks down, read events, set the streams up. */
export function cellPermissionsOfApi(cell: string): BusPermissions {
  return {
    publish: [cellTasksSubject(cell)],
    consume: [cellEventsForSchedulers, cellEventsForApi],
    ensureStreams: true,
  };
}

/** What a cell's conductors may do: take its tasks, tell its events. Nothing reaches upward or into another cell. */
export function conductorPermissions(cell: string): BusPermissions {
  return { publish: [cellEventsSubject(cell)], consume: [cellTasksConsumer], ensureStreams: false };
}

/** Where the answers to a user's requests go: nobody else may listen there. */
export function inboxPrefixOf(user: string): string {
  return `_INBOX.${user}`;
}

/** The API tier's user in its own account. */
export const natsUserOfApi = "api";

/** The API tier's user in a cell's account. */
export function natsUserOfApiIn(cell: string): string {
  return `api-${cell}`;
}

/** The user of a cell's conductors. */
export function natsUserOfConductors(cell: string): string {
  return `conductor-${cell}`;
}
