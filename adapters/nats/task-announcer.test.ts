import { expect, test } from "vitest";
import { TaskNotice } from "../../proto/gen/berth/cell.ts";
import { BusError, type PublishOptions } from "../../runtime/bus.ts";
import { TaskAnnouncer } from "./task-announcer.ts";

interface Published {
  readonly subject: string;
  readonly ids: readonly string[];
  readonly options: PublishOptions | undefined;
}

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
  await announcer.announce("a", {});
  expect(published).toEqual([{ subject: "cell.one.tasks", ids: ["a"], options: { id: "a" } }]);
});

test("tasks that come together share messages, which no other message's id can drop as duplicates", async () => {
  const { announcer, published } = openAnnouncer();
  const ids = Array.from({ length: 100 }, (_, index) => `task-${index}`);
  await Promise.all(ids.map((id) => announcer.announce(id, {})));
  expect(published.flatMap((message) => message.ids)).toEqual(ids);
  expect(published.length).toBe(2);
  for (const { ids: together, options } of published) if (together.length > 1) expect(options).toEqual({});
});

test("a task with headers, or with an id for its message, has a message of its own", async () => {
  const { announcer, published } = openAnnouncer();
  await Promise.all([
    announcer.announce("a", { traceparent: "1" }),
    announcer.announce("b", {}, "b again"),
    announcer.announce("c", {}),
    announcer.announce("d", {}),
  ]);
  expect(published.map(({ ids, options }) => [ids, options])).toEqual([
    [["a"], { id: "a", headers: { traceparent: "1" } }],
    [["b"], { id: "b again", headers: {} }],
    [["c", "d"], {}],
  ]);
});

test("every task of a message that the bus refuses is rejected", async () => {
  const { announcer } = openAnnouncer(() => Promise.reject(new BusError("timeout", "cell.one.tasks", "no answer")));
  const ends = await Promise.allSettled(["a", "b"].map((id) => announcer.announce(id, {})));
  expect(ends.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
});
