import { afterEach, beforeEach, expect, test } from "vitest";
import { cellConsolesSubject } from "../../../adapters/nats/streams.ts";
import { ConsoleAnswer, ConsoleQuestion } from "../../../proto/gen/berth/cell.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2" });
});
afterEach(() => rig.close());

const OWNER = "dora:p";
const as = (token: string) => ({ "x-auth-token": token });
const server = { name: "web", flavorRef: "1" };
const created = async (): Promise<string> => (await rig.post("/v2.1/servers", { server }, as(OWNER))).json().server.id;
const active = async (): Promise<string> => {
  const id = await created();
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
};
const asked: ConsoleQuestion[] = [];
const answering = (answer: ConsoleAnswer["answer"]) =>
  rig.cell("north").bus.answer(cellConsolesSubject("north"), async (question) => {
    asked.push(ConsoleQuestion.decode(question));
    return ConsoleAnswer.encode({ answer }).finish();
  });
const outputOf = (text: string): ConsoleAnswer["answer"] => ({ $case: "output", value: Buffer.from(text) });
const consoleOf = async (id: string, value: unknown = {}, token = OWNER) => {
  const answer = await rig.post(`/v2.1/servers/${id}/action`, { "os-getConsoleOutput": value }, as(token));
  return [answer.statusCode, answer.json()];
};
const fault = (code: number, name: string, message: unknown) => [code, { [name]: { code, message } }];

test("the console has the last lines that were asked for, without control characters", async () => {
  const id = await active();
  await answering(outputOf("one\r\n\u001b[1mtwo\tthree\r\nfour ü"));
  expect(await consoleOf(id)).toEqual([200, { output: "one\n[1mtwo\tthree\nfour ü" }]);
  const found = (await rig.cell("north").store.servers([id]))[0];
  expect(asked.at(-1)).toEqual({
    ...{
      host: found?.host,
      serverUuid: id,
      attemptId: found?.attemptId,
      bytesMax: 102_400,
      pinning: false,
      diagnostics: false,
      revision: 0,
    },
  });
  for (const [length, output] of [
    [null, "one\n[1mtwo\tthree\nfour ü"],
    [-1, "one\n[1mtwo\tthree\nfour ü"],
    ["2", "[1mtwo\tthree\nfour ü"],
    [1, "four ü"],
    [99, "one\n[1mtwo\tthree\nfour ü"],
    [0, ""],
  ])
    expect(await consoleOf(id, { length })).toEqual([200, { output }]);
});

test.each([[-2], ["x"], ["-7"], [1.5], [true], [{}]])(
  "the length %j is refused, and nothing is asked",
  async (length) => {
    const id = await active();
    const before = asked.length;
    await answering(outputOf("x"));
    const [status, body] = await consoleOf(id, { length });
    expect([status, body.badRequest.message]).toEqual([400, expect.stringContaining("field/attribute length")]);
    expect(asked.length).toBe(before);
  },
);

test("other fields are refused, and other projects see no server", async () => {
  const id = await active();
  await answering(outputOf("secret"));
  expect((await consoleOf(id, { lines: 3 }))[0]).toBe(400);
  expect((await consoleOf(id, {}, "eve:q"))[0]).toBe(404);
  expect((await consoleOf("7a7a7a7a-7a7a-4a7a-8a7a-7a7a7a7a7a7a"))[0]).toBe(404);
});

test("a locked server shows its console to its owner", async () => {
  const id = await active();
  await answering(outputOf("x"));
  await rig.post(`/v2.1/servers/${id}/action`, { lock: null }, as("admin:p"));
  expect(await consoleOf(id)).toEqual([200, { output: "x" }]);
});

test("the errors are Nova's: without a host 409, without a console 404; and 503 when the host or the cell is away", async () => {
  const waiting = await created();
  expect(await consoleOf(waiting)).toEqual(fault(409, "conflictingRequest", `Instance ${waiting} is not ready`));
  const id = await active();
  const away = fault(
    503,
    "serviceUnavailable",
    `The console of instance ${id} cannot be read now: its host does not answer.`,
  );
  expect(await consoleOf(id)).toEqual(away);
  for (const [answer, expected] of [
    [{ $case: "absent", value: true }, fault(404, "itemNotFound", "Guest does not have a console available.")],
    [{ $case: "away", value: true }, away],
    [{ $case: "failed", value: "/var/lib/berth/x cannot be read" }, away],
    [undefined, away],
  ] as const) {
    const one = await answering(answer);
    expect(await consoleOf(id)).toEqual(expected);
    await one.stop();
  }
  rig.cell("north").dead = true;
  expect((await consoleOf(id))[0]).toBe(503);
  rig.cell("north").dead = false;
});

test("a conductor to which the host is not connected does not hide another one to which it is", async () => {
  const id = await active();
  await answering({ $case: "away", value: true });
  await answering(outputOf("here"));
  expect(await consoleOf(id)).toEqual([200, { output: "here" }]);
});
