import type { BusPermissions, ConsumerName, StreamSpec } from "../../runtime/bus.ts";

/** The work queue of accepted requests, in the API tier's account. */
export const schedulerRequestsSubject = "scheduler.requests";
/** The consumer that all schedulers share. */
export const schedulerRequestsConsumer: ConsumerName = { stream: "SCHEDULER", consumer: "schedulers" };
/** The consumer of a cell's work queue of tasks. Stream and consumer have the same names in each cell's account. */
export const cellTasksConsumer: ConsumerName = { stream: "TASKS", consumer: "conductors" };
/** A cell's events for the schedulers (build failures). */
export const cellEventsForSchedulers: ConsumerName = { stream: "EVENTS", consumer: "schedulers" };
/** A cell's events for the api (servers that are gone). */
export const cellEventsForApi: ConsumerName = { stream: "EVENTS", consumer: "api" };

/** Requests are small and many, so a scheduler takes them in batches. After this time an unanswered request goes to another scheduler. */
export const requestAckWaitMs = 15_000;
/** A task's message is acknowledged as soon as its row is taken, so little time is needed. */
const taskAckWaitMs = 10_000;
const eventAckWaitMs = 10_000;
const eventMaxAgeMs = 3_600_000;
/** About 250 MB. Sweeps make up for unread events. */
const eventsMax = 1_000_000;
const maxAckPending = 20_000;

export function cellTasksSubject(cell: string): string {
  return `cell.${cell}.tasks`;
}

/** Marks the message of a task whose operation got a signal. The conductor that already carries out the task must take it again, too. */
export const taskSignalHeader = "berth-signal";

export function cellEventsSubject(cell: string): string {
  return `cell.${cell}.events`;
}

/** The subject of questions about the consoles of a cell's guests. Conductors answer. */
export function cellConsolesSubject(cell: string): string {
  return `cell.${cell}.consoles`;
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
      maxMessages: eventsMax,
      consumers: [
        { name: cellEventsForSchedulers.consumer, ackWaitMs: eventAckWaitMs, maxAckPending },
        { name: cellEventsForApi.consumer, ackWaitMs: eventAckWaitMs, maxAckPending },
      ],
    },
  ];
}

/** The permissions of the API tier's user in its own account. */
export const apiPermissions: BusPermissions = {
  publish: [schedulerRequestsSubject],
  consume: [schedulerRequestsConsumer],
  ask: [],
  answer: [],
  ensureStreams: true,
};

/** The permissions of the API tier's user in a cell's account: it sends tasks, asks questions, reads events and sets up the streams. */
export function cellPermissionsOfApi(cell: string): BusPermissions {
  return {
    publish: [cellTasksSubject(cell)],
    consume: [cellEventsForSchedulers, cellEventsForApi],
    ask: [cellConsolesSubject(cell)],
    answer: [],
    ensureStreams: true,
  };
}

/**
 * The permissions of a cell's conductors: they take the cell's tasks, publish its events and answer questions. Nothing reaches upwards or into another cell.
 */
export function conductorPermissions(cell: string): BusPermissions {
  return {
    publish: [cellEventsSubject(cell)],
    consume: [cellTasksConsumer],
    ask: [],
    answer: [cellConsolesSubject(cell)],
    ensureStreams: false,
  };
}

/** The inbox for the answers to a user's requests. No other user may listen there. */
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
