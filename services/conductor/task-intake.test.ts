import { setImmediate as turn } from "node:timers/promises";
import { Registry } from "prom-client";
import { describe, expect, test } from "vitest";
import { taskSignalHeader } from "../../adapters/nats/streams.ts";
import { Task, TaskNotice } from "../../proto/gen/berth/cell.ts";
import { BusError, type BusMessage } from "../../runtime/bus.ts";
import { createLogger } from "../../runtime/logger.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { dispatchOf, taskId } from "../../test/contract/cell-fixtures.ts";
import { ConductorEvents } from "./events.ts";
import { noticeOf, TaskIntake, type TaskIntakeOptions } from "./task-intake.ts";

test("reads the ids of a notice's tasks, each once", () => {
  const notice = TaskNotice.encode({ id: taskId(7), more: [taskId(8), taskId(7), taskId(9)], told: [] }).finish();
  expect(noticeOf(notice)).toEqual({ ids: [taskId(7), taskId(8), taskId(9)], told: [] });
});

test("reads the id of a whole task, which older versions publish", () => {
  const { task } = dispatchOf({ server: 1, task: 7, hosts: [1, 2] });
  expect(noticeOf(Task.encode(task).finish())).toEqual({ ids: [taskId(7)], told: [] });
});

test("is read by older versions, which take the first field for the only task", () => {
  const notice = TaskNotice.encode({ id: taskId(7), more: [taskId(8)], told: [] }).finish();
  expect(Task.decode(notice)).toMatchObject({ id: taskId(7), server: undefined, work: undefined });
});

test.each([
  ["nothing", []],
  ["a task without an id", [18, 0]],
  ["no protobuf at all", [10, 250, 1, 2]],
])("finds none in %s", (_, bytes) => {
  expect(noticeOf(new Uint8Array(bytes)).ids).toEqual([]);
});

test("reads the tasks that a notice carries, and only names those that cannot be decoded or that it does not name", () => {
  const { task } = dispatchOf({ server: 1, task: 7, hosts: [1, 2] });
  const { task: other } = dispatchOf({ server: 2, task: 9, hosts: [1, 2] });
  const told = [Task.encode(task).finish(), new Uint8Array([10, 250, 1, 2]), Task.encode(other).finish()];
  const notice = TaskNotice.encode({ id: taskId(7), more: [taskId(8)], told: told.map((one) => Buffer.from(one)) });
  expect(noticeOf(notice.finish())).toEqual({ ids: [taskId(7), taskId(8)], told: [task] });
});

describe("a task that its message tells", () => {
  const NOW_MS = 1_000_000;
  const { task } = dispatchOf({ server: 1, task: 7, hosts: [1] });
  const data = TaskNotice.encode({ id: task.id, more: [], told: [Buffer.from(Task.encode(task).finish())] }).finish();

  /** What an intake does with the message: which tasks it begins and which it takes, and with what it begins those. */
  async function doneWith(message: Partial<BusMessage>, mayBegin = true): Promise<Record<string, unknown>> {
    const done: Record<string, unknown> = {};
    let deliver: (message: BusMessage) => void = () => {};
    const runs = {
      ...{ size: 0, arrivals: 0, has: () => false, untaken: () => [] },
      beginUntaken: ({ id }: Task) => {
        if (mayBegin) done.begun = id;
        return mayBegin;
      },
      begin(_: unknown, { isFirst }: { isFirst?: boolean }) {
        done.isFirst = isFirst;
      },
    };
    const options = {
      bus: {
        consume: async (...[, , onMessage]: Parameters<TaskIntakeOptions["bus"]["consume"]>) => {
          deliver = onMessage;
          return { stop: async () => {} };
        },
      },
      ...{ store: { sweepTasks: async () => [] }, releaser: { resting: () => [] } },
      events: {
        toldUnusable(reason: string) {
          done.unusable = reason;
        },
        clocksDiffer() {},
      },
      commits: {
        take: async (id: string) => {
          done.taken = id;
          return { task };
        },
      },
      ...{ runs, clock: new ManualClock(NOW_MS) },
      settings: { conductorId: "c", untakenMs: 2_000, sweepMs: 1_000, messagesInFlightMax: 10, tasksMax: 10 },
    };
    const intake = new TaskIntake(options as unknown as TaskIntakeOptions);
    await intake.start();
    await new Promise<void>((resolve) => {
      const plain = {
        subject: "s",
        data,
        headers: {},
        deliveries: 1,
        storedAtMs: NOW_MS,
        ack: () => resolve(),
        retry: () => resolve(),
      };
      deliver({ ...plain, ...message });
    });
    await intake.stop();
    return done;
  }

  test("is begun without being taken", async () => {
    expect(await doneWith({})).toEqual({ begun: task.id });
  });

  test.each([
    ["the message has waited for long, so that a sweep may have it soon", { storedAtMs: NOW_MS - 501 }, true, "old"],
    [
      "the clock of NATS is ahead, so that nobody knows how long it has waited",
      { storedAtMs: NOW_MS + 501 },
      true,
      "future",
    ],
    [
      "the message is delivered again, since another conductor may have begun it",
      { deliveries: 2, storedAtMs: NOW_MS - 501 },
      false,
      undefined,
    ],
    ["the message is a signal", { headers: { [taskSignalHeader]: "1" } }, false, undefined],
    [
      "the message only names it, whatever its age",
      { data: TaskNotice.encode(TaskNotice.fromPartial({ id: task.id })).finish(), storedAtMs: NOW_MS - 501 },
      true,
      undefined,
    ],
  ])("is taken when %s", async (_, message, isFirst, unusable) => {
    expect(await doneWith(message)).toEqual({ taken: task.id, isFirst, unusable });
  });

  test("is taken, as one that nobody has begun, when it cannot be begun here", async () => {
    expect(await doneWith({}, false)).toEqual({ taken: task.id, isFirst: true });
  });
});

test("holds the builds that it has begun before each part of a sweep, since others sweep them when it takes long", async () => {
  const done: string[] = [];
  const { promise: isSwept, resolve: swept } = Promise.withResolvers<void>();
  const { task } = dispatchOf({ server: 1, task: 7, hosts: [1] });
  const runs = { ...{ size: 0, arrivals: 0, begin() {} }, untaken: () => [taskId(9)], heldOrOver() {} };
  const store = {
    holdTasks: async () => void done.push("hold"),
    sweepTasks: async () => {
      done.push("sweep");
      if (done.length < 6) return [{ task }];
      swept();
      return [];
    },
  };
  const clock = new ManualClock();
  const options = {
    bus: { consume: async () => ({ stop: async () => {} }) },
    ...{ store, runs, clock, commits: {}, releaser: { resting: () => [] }, events: { swept() {} } },
    settings: { conductorId: "c", untakenMs: 2_000, sweepMs: 1_000, messagesInFlightMax: 10, tasksMax: 1 },
  };
  const intake = new TaskIntake(options as unknown as TaskIntakeOptions);
  await intake.start();
  clock.advance(1_000);
  await isSwept;
  await intake.stop();
  expect(done).toEqual(["hold", "sweep", "hold", "sweep", "hold", "sweep"]);
});

describe("a conductor that starts before its cell's streams exist", () => {
  /** An intake whose bus fails with `error` until `exists` is set, and the log lines of both. */
  async function startWithout(error: BusError) {
    const log: Record<string, unknown>[] = [];
    const stream = { write: (line: string) => void log.push(JSON.parse(line)) };
    const clock = new ManualClock();
    const logger = createLogger({ name: "test", level: "info", stream });
    const nats = { tries: 0, exists: false };
    const options = {
      bus: {
        consume: async () => {
          nats.tries += 1;
          if (!nats.exists) throw error;
          return { stop: async () => {} };
        },
      },
      events: new ConductorEvents({ logger, registry: new Registry(), clock, taskCount: () => 0 }),
      ...{
        store: { sweepTasks: async () => [], ownedTasks: async () => [] },
        runs: { size: 0, arrivals: 0, untaken: () => [] },
      },
      ...{ clock, commits: {}, releaser: { resting: () => [] } },
      settings: { conductorId: "c", untakenMs: 2_000, sweepMs: 1_000, messagesInFlightMax: 10, tasksMax: 1 },
    };
    const intake = new TaskIntake(options as unknown as TaskIntakeOptions);
    await intake.start();
    /** Lets this many further tries happen, each of which follows within two seconds. */
    const retried = async (tries: number) => {
      for (let at = 0; at < tries; at += 1) {
        clock.advance(2_000);
        await turn();
      }
    };
    return { intake, nats, log, retried, lines: () => log.map(({ level, msg }) => `${level}: ${msg}`) };
  }
  const missing = new BusError("no-stream", "TASKS/conductors", "stream not found");

  test("waits for them with one line and no warning, and says when it reads", async () => {
    const { intake, nats, log, retried, lines } = await startWithout(missing);
    await retried(5);
    nats.exists = true;
    await retried(1);
    expect(intake.subscribed).toBe(true);
    expect(lines()).toEqual([
      expect.stringMatching(/^info: the conductor waits for the streams of its cell/),
      expect.stringMatching(/^info: the conductor reads messages/),
    ]);
    expect(log[0]).toMatchObject({ stream: "TASKS/conductors" });
    expect(JSON.stringify(log)).not.toContain("stack");
    await intake.stop();
  });

  test("warns once a minute while they stay missing", async () => {
    const { intake, retried, lines } = await startWithout(missing);
    await retried(50);
    await intake.stop();
    const warning = expect.stringMatching(/^warn: the streams of this cell are still missing/);
    expect(lines().slice(1)).toEqual([warning, warning]);
  });

  test("warns at once if NATS does not answer, and not again at each try", async () => {
    const { intake, nats, retried, lines } = await startWithout(
      new BusError("timeout", "TASKS/conductors", "no answer"),
    );
    await retried(5);
    await intake.stop();
    expect(nats.tries).toBe(6);
    expect(lines()).toEqual([expect.stringMatching(/^warn: the conductor cannot read messages from NATS yet/)]);
  });
});
