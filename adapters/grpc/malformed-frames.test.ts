import { randomUUID } from "node:crypto";
import { Client, credentials } from "@grpc/grpc-js";
import { expect, onTestFinished, test } from "vitest";
import {
  AgentFrame,
  type AgentMessage,
  Guest,
  GuestState,
  Hello,
  HostState,
  ProviderReport,
  TreeReport,
} from "../../proto/gen/berth/agent.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { createGrpcAgentListener } from "./grpc-listener.ts";
import { readAgentFrame } from "./read-agent-frame.ts";

const unchanged = (bytes: Buffer): Buffer => bytes;
/** A field of a protobuf message that contains other bytes. */
const field = (number: number, inner: Buffer): Buffer =>
  Buffer.concat([Buffer.from([number * 8 + 2, inner.length]), inner]);

/** A hello whose only guest has obeyed order 2^63 - 1, which no number of JavaScript holds. */
function hugeRevision(): Buffer {
  const guest = Buffer.from("20ffffffffffffffff7f", "hex");
  const host = Buffer.concat([field(1, Buffer.from("host-1")), field(2, guest)]);
  return field(1, field(1, Buffer.concat([field(1, Buffer.from("agent-1")), field(2, host)])));
}

const wrapped = (number: number, inner: Buffer): Buffer => {
  const length: number[] = [];
  for (let left = inner.length; ; left >>>= 7) {
    length.push(left > 127 ? (left & 127) | 128 : left);
    if (left <= 127) return Buffer.concat([Buffer.from([number * 8 + 2, ...length]), inner]);
  }
};
/** A million heartbeats: 4 MB on the wire, hundreds of MB as objects. */
const heartbeats = (): Buffer => Buffer.alloc(4_000_000, field(1, field(2, Buffer.alloc(0))));
/** A hello of one host with a million guests, each of which is two bytes. */
const emptyGuests = (): Buffer =>
  wrapped(1, wrapped(1, wrapped(2, Buffer.alloc(2_000_000, field(2, Buffer.alloc(0))))));

/** A listener, and a client that opens streams over one connection and sends frames as they are given. */
async function listenAndDial() {
  const listener = await createGrpcAgentListener({ listen: "127.0.0.1:0" });
  const client = new Client(listener.address, credentials.createInsecure());
  onTestFinished(async () => {
    client.close();
    await listener.close();
  });
  const dial = () => {
    const call = client.makeBidiStreamRequest("/berth.Conductors/Connect", unchanged, unchanged);
    return call.on("error", () => {}).on("data", () => {});
  };
  return { listener, dial };
}

test.each([
  ["bytes that are no message", Buffer.from("ffffffffffffffffffffffff", "hex")],
  ["half a message", Buffer.from("0a", "hex")],
  ["a number that is too large", hugeRevision()],
  ["a million messages", heartbeats()],
  ["a million guests that have nothing", emptyGuests()],
])("a frame with %s ends its own stream and nothing else", async (_, bytes) => {
  const { listener, dial } = await listenAndDial();
  const heard: AgentMessage[] = [];
  let [arrived, closed] = [0, 0];
  listener.onAgent((stream) => {
    arrived += 1;
    stream.onMessages((messages) => heard.push(...messages));
    stream.onClose(() => {
      closed += 1;
    });
  });
  const other = dial();
  await eventually("the other stream", () => arrived === 1);
  dial().write(bytes);
  await eventually("the end of the stream", () => closed === 1);
  other.write(field(1, field(2, Buffer.alloc(0))));
  await eventually("a heartbeat of the other one", () => heard.length > 0);
  expect(heard).toMatchObject([{ body: { $case: "heartbeat" } }]);
});

test("a connection carries a few streams at a time, and the next one only when another has ended", async () => {
  const { listener, dial } = await listenAndDial();
  let [arrived, heard] = [0, 0];
  listener.onAgent((stream) => {
    arrived += 1;
    stream.onMessages(() => {
      heard += 1;
    });
  });
  const calls = Array.from({ length: 50 }, dial);
  await eventually("the first streams", () => arrived === 4);
  // Frames of one connection arrive in order, so the other streams would have arrived before this message.
  calls[0]?.write(field(1, field(2, Buffer.alloc(0))));
  await eventually("the message", () => heard === 1);
  expect(arrived).toBe(4);
  calls[0]?.cancel();
  await eventually("the next stream", () => arrived === 5);
});

test("the hello of an agent with a hundred thousand guests, and a tree of the greatest size, are read", () => {
  const guest = Guest.create({
    ...{ serverUuid: randomUUID(), attemptId: randomUUID(), state: GuestState.GUEST_STATE_RUNNING },
    ...{ revision: 300, heardRevision: 300 },
  });
  const host = HostState.create({ host: "h-1", guests: Array.from({ length: 1_000 }, () => guest) });
  const hello = Hello.create({ agentId: "a", hosts: Array.from({ length: 100 }, () => host) });
  const inventory = {
    total: 1,
    reserved: 1,
    minUnit: 1,
    maxUnit: 1,
    stepSize: 1,
    allocationRatio: 1,
    isInitialRatio: true,
  };
  const inventories = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`C${index}`, inventory]));
  const provider = ProviderReport.create({ uuid: randomUUID(), name: "h-1_1", parent: randomUUID(), inventories });
  const tree = TreeReport.create({ host: "h-1", providers: Array.from({ length: 1_000 }, () => provider) });
  const messages: AgentMessage[] = [
    { body: { $case: "hello", value: hello } },
    { body: { $case: "tree", value: tree } },
  ];
  for (const message of messages) {
    const read = readAgentFrame(Buffer.from(AgentFrame.encode({ messages: [message] }).finish()));
    expect(read.messages.map(({ body }) => body?.$case)).toEqual([message.body?.$case]);
  }
});
