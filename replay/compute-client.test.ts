import { expect, test } from "vitest";
import { ComputeClient } from "./compute-client.ts";
import type { HttpAnswer, HttpCall } from "./pool-sender.ts";

/** A client whose sender returns these answers in order, and records the calls. */
function clientOf(...answers: HttpAnswer[]) {
  const asked: HttpCall[] = [];
  const send = async (call: HttpCall) => {
    asked.push(call);
    return answers.shift() ?? { status: 500, text: "asked too often" };
  };
  const client = new ComputeClient({ send, close: async () => {} }, 0);
  return { client, asked };
}

const putOff: HttpAnswer = { status: 503, text: "cell-3 does not answer" };

test("a read or a delete that is answered with 503 is repeated", async () => {
  const { client, asked } = clientOf(putOff, { status: 404, text: "" }, putOff, { status: 204, text: "" });
  expect(await client.showServer("a")).toBeNull();
  await client.deleteServer("a");
  expect(asked.map(({ method }) => method)).toEqual(["GET", "GET", "DELETE", "DELETE"]);
});

test("a flavor is created again after a 503, although the first call may have created it", async () => {
  const ok: HttpAnswer = { status: 200, text: "{}" };
  const { client, asked } = clientOf(putOff, { status: 409, text: "exists" }, putOff, ok);
  await client.createFlavor({ id: "f", vcpus: 1, memoryMib: 64, extraSpecs: {} });
  expect(asked.map(({ path }) => path)).toEqual([
    ...["/v2.1/flavors", "/v2.1/flavors"],
    ...["/v2.1/flavors/f/os-extra_specs", "/v2.1/flavors/f/os-extra_specs"],
  ]);
});

test("a create that is answered with 503 is reported to the caller, because a repetition might create a second server", async () => {
  const { client, asked } = clientOf(putOff);
  await expect(client.createServer({ name: "s", flavorId: "f", metadata: {} })).rejects.toMatchObject({ status: 503 });
  expect(asked).toHaveLength(1);
});
