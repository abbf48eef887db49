import { expect, test } from "vitest";
import { ScheduleRequest } from "../../proto/gen/berth/scheduler.ts";
import { BusError, type PublishOptions } from "../../runtime/bus.ts";
import { serversToldOf } from "../../test/rigs/servers-told-of.ts";
import { RequestAnnouncer } from "./request-announcer.ts";

interface Published {
  readonly uuids: readonly string[];
  readonly options: PublishOptions | undefined;
}

function openAnnouncer(answer: (uuids: readonly string[]) => Promise<void> = async () => undefined) {
  const published: Published[] = [];
  const publish = (_: string, data: Uint8Array, options?: PublishOptions): Promise<void> => {
    published.push({ uuids: serversToldOf(data), options });
    return answer(serversToldOf(data));
  };
  return { announcer: new RequestAnnouncer({ publish }), published };
}

const uuidsTo = (count: number): readonly string[] => Array.from({ length: count }, (_, index) => `server-${index}`);

test("a request that comes alone is published under its id", async () => {
  const { announcer, published } = openAnnouncer();
  await announcer.announce("a", {});
  expect(published).toEqual([{ uuids: ["a"], options: { id: "a" } }]);
});

test("requests that come together share messages, each of which has the id of its first request", async () => {
  const { announcer, published } = openAnnouncer();
  await Promise.all(uuidsTo(20).map((uuid) => announcer.announce(uuid, {})));
  expect(published.flatMap(({ uuids }) => uuids)).toEqual(uuidsTo(20));
  expect(published.map(({ uuids, options }) => [uuids.length, options?.id])).toEqual([
    [8, "server-0"],
    [8, "server-8"],
    [4, "server-16"],
  ]);
});

test("a request that is traced has a message of its own", async () => {
  const { announcer, published } = openAnnouncer();
  const traced = announcer.announce("a", { traceparent: "1" });
  await Promise.all([traced, announcer.announce("b", {}), announcer.announce("c", {})]);
  expect(published).toEqual([
    { uuids: ["a"], options: { id: "a", headers: { traceparent: "1" } } },
    { uuids: ["b", "c"], options: { id: "b" } },
  ]);
});

test("the requests of a message that the bus refuses are rejected, and those of the other messages are not", async () => {
  const timeout = new BusError("timeout", "scheduler.requests", "no answer");
  const { announcer } = openAnnouncer(async (uuids) => {
    if (uuids[0] === "server-8") throw timeout;
  });
  const ends = await Promise.allSettled(uuidsTo(18).map((uuid) => announcer.announce(uuid, {})));
  expect(ends.map(({ status }) => status === "rejected")).toEqual(uuidsTo(18).map((_, at) => at >= 8 && at < 16));
});

test("a message whose answer is outstanding delays no later one", async () => {
  const { announcer, published } = openAnnouncer(() => new Promise(() => undefined));
  for (const uuid of uuidsTo(3)) {
    void announcer.announce(uuid, {});
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(published).toHaveLength(3);
});

test("a small spec goes along with a request that has a message for itself", async () => {
  const specs: number[] = [];
  const publish = async (_: string, data: Uint8Array): Promise<void> => {
    specs.push(ScheduleRequest.decode(data).spec.length);
  };
  const announcer = new RequestAnnouncer({ publish });
  await announcer.announce("alone", {}, new Uint8Array(500));
  await announcer.announce("traced", { traceparent: "00-a-b-01" }, new Uint8Array(400));
  await announcer.announce("large", {}, new Uint8Array(10_000));
  await Promise.all(uuidsTo(2).map((uuid) => announcer.announce(uuid, {}, new Uint8Array(500))));
  expect(specs).toEqual([500, 400, 0, 0]);
});
