import { Client, credentials } from "@grpc/grpc-js";
import { expect, onTestFinished, test } from "vitest";
import type { AgentMessage } from "../../proto/gen/berth/agent.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { createGrpcAgentListener } from "./grpc-listener.ts";

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

test.each([
  ["bytes that are no message", Buffer.from("ffffffffffffffffffffffff", "hex")],
  ["half a message", Buffer.from("0a", "hex")],
  ["a number that is too large", hugeRevision()],
])("a frame with %s ends its own stream and nothing else", async (_, bytes) => {
  const listener = await createGrpcAgentListener({ listen: "127.0.0.1:0" });
  const heard: AgentMessage[] = [];
  let [arrived, closed] = [0, 0];
  listener.onAgent((stream) => {
    arrived += 1;
    stream.onMessages((messages) => heard.push(...messages));
    stream.onClose(() => {
      closed += 1;
    });
  });
  const client = new Client(listener.address, credentials.createInsecure());
  onTestFinished(async () => {
    client.close();
    await listener.close();
  });
  const dial = () => {
    const call = client.makeBidiStreamRequest("/berth.Conductors/Connect", unchanged, unchanged);
    call.on("error", () => {}).on("data", () => {});
    return call;
  };
  const other = dial();
  await eventually("the other stream", () => arrived === 1);
  dial().write(bytes);
  await eventually("the end of the stream", () => closed === 1);
  other.write(field(1, field(2, Buffer.alloc(0))));
  await eventually("a heartbeat of the other one", () => heard.length > 0);
  expect(heard).toMatchObject([{ body: { $case: "heartbeat" } }]);
});
