import { describe, expect, test } from "vitest";
import { Task, TaskNotice } from "../../proto/gen/berth/cell.ts";
import { ServerPort, type ServerSpec, ServerVolume } from "../../proto/gen/berth/shared.ts";
import { BusError, type PublishOptions } from "../../runtime/bus.ts";
import { dispatchOf, taskId } from "../../test/contract/cell-fixtures.ts";
import { TaskAnnouncer } from "./task-announcer.ts";

interface Published {
  readonly subject: string;
  readonly ids: readonly string[];
  readonly options: PublishOptions | undefined;
}

const task = (id: string): Task => ({ id, server: undefined, work: undefined });

function openAnnouncer(answer: () => Promise<void> = async () => undefined) {
  const published: Published[] = [];
  const publish = (subject: string, data: Uint8Array, options?: PublishOptions): Promise<void> => {
    const { id, more } = TaskNotice.decode(data);
    published.push({ subject, ids: [id, ...more], options });
    return answer();
  };
  return { announcer: new TaskAnnouncer({ publish }, "one"), published };
}

test("a task that comes alone is published under its id", async () => {
  const { announcer, published } = openAnnouncer();
  await announcer.announce(task("a"), {});
  expect(published).toEqual([{ subject: "cell.one.tasks", ids: ["a"], options: { id: "a" } }]);
});

test("tasks that come together share messages, which no other message's id can drop as duplicates", async () => {
  const { announcer, published } = openAnnouncer();
  const ids = Array.from({ length: 100 }, (_, index) => `task-${index}`);
  await Promise.all(ids.map((id) => announcer.announce(task(id), {})));
  expect(published.flatMap((message) => message.ids)).toEqual(ids);
  expect(published.length).toBe(2);
  for (const { ids: together, options } of published) if (together.length > 1) expect(options).toEqual({});
});

test("a task with headers, or with an id for its message, has a message of its own", async () => {
  const { announcer, published } = openAnnouncer();
  await Promise.all([
    announcer.announce(task("a"), { traceparent: "1" }),
    announcer.announce(task("b"), {}, "b again"),
    announcer.announce(task("c"), {}),
    announcer.announce(task("d"), {}),
  ]);
  expect(published.map(({ ids, options }) => [ids, options])).toEqual([
    [["a"], { id: "a", headers: { traceparent: "1" } }],
    [["b"], { id: "b again", headers: {} }],
    [["c", "d"], {}],
  ]);
});

test("every task of a message that the bus refuses is rejected", async () => {
  const { announcer } = openAnnouncer(() => Promise.reject(new BusError("timeout", "cell.one.tasks", "no answer")));
  const ends = await Promise.allSettled(["a", "b"].map((id) => announcer.announce(task(id), {})));
  expect(ends.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
});

describe("a build goes along with its name", () => {
  const build = (changes: Partial<ServerSpec> = {}): Task => {
    const { task: plain } = dispatchOf({ server: 1, task: 7, hosts: [1] });
    return { ...plain, server: { ...plain.server!, ...changes } };
  };
  async function toldOf(tasks: readonly Task[], messageId?: string): Promise<readonly string[]> {
    const told: string[] = [];
    const publish = async (_: string, data: Uint8Array): Promise<void> => {
      told.push(...TaskNotice.decode(data).told.map((bytes) => Task.decode(bytes).id));
    };
    const announcer = new TaskAnnouncer({ publish }, "one");
    await Promise.all(tasks.map((one) => announcer.announce(one, {}, messageId)));
    return told;
  }

  test("also among tasks that do not", async () => {
    expect(await toldOf([task("a"), build(), task("b")])).toEqual([taskId(7)]);
  });

  test.each([
    ["has secrets", { userData: "c2VjcmV0" }],
    ["has volumes", { volumes: [ServerVolume.fromPartial({ volumeId: "v" })] }],
    ["has ports in Neutron", { ports: [ServerPort.fromPartial({ portId: "p", macAddress: "fa:16:3e:00:00:01" })] }],
    ["is large", { name: "n".repeat(9_000) }],
  ])("unless it %s", async (_, changes) => {
    expect(await toldOf([build(changes)])).toEqual([]);
  });

  test("unless its message tells so much already that a thousand such messages are too much for one reader", async () => {
    const name = "n".repeat(7_000);
    expect(await toldOf(Array.from({ length: 20 }, () => build({ name })))).toHaveLength(8);
    expect(await toldOf(Array.from({ length: 64 }, () => build()))).toHaveLength(64);
  });

  test("unless it was published before, since it may have begun", async () => {
    expect(await toldOf([build()], "again")).toEqual([]);
  });
});
