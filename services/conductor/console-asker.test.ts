import { expect, test } from "vitest";
import type { ConductorMessage } from "../../proto/gen/berth/agent.ts";
import { ConsoleAnswer, ConsoleQuestion } from "../../proto/gen/berth/cell.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import type { AgentConnection } from "./agent-registry.ts";
import { ConsoleAsker } from "./console-asker.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorBus } from "./ports.ts";

type Told = Parameters<ConsoleAsker["told"]>[0];
const NAME = { host: "host-1", serverUuid: "server", attemptId: "task/0" };
const NOTHING = {
  ...{ bytesMax: 1_000, open: undefined, pinning: false, diagnostics: false },
  ...{ interfaces: undefined, revision: 0 },
};
/** More than a message of the bus carries. */
const TOO_MANY = 300_000;

/** Asks about a guest whose agent gives this answer to every question, and returns the answer. */
async function answerTo(
  question: Partial<ConsoleQuestion>,
  says: (name: { readonly host: string; readonly query: number }) => Told,
): Promise<ConsoleAnswer["answer"]> {
  let ask: (question: Uint8Array) => Promise<Uint8Array> = () => Promise.reject(new Error("nobody answers"));
  const send = ({ body }: ConductorMessage) => {
    if (body !== undefined && "query" in body.value)
      asker.told(says({ host: NAME.host, query: body.value.query }), agent);
  };
  const stream = { send, closed: false, onMessages: () => {}, onClose: () => {}, close: () => {} };
  const agent: AgentConnection = { agentId: "agent", arrival: 1, stream, hosts: new Map() };
  const bus = {
    answer: async (_subject: string, answer: typeof ask) => {
      ask = answer;
      return { stop: async () => {} };
    },
  } as Partial<ConductorBus> as ConductorBus;
  const asker = new ConsoleAsker({
    ...{ bus, cell: "cell", clock: new ManualClock(), events: {} as ConductorEvents },
    registry: { connectionOf: () => agent },
  });
  await asker.start();
  return ConsoleAnswer.decode(await ask(ConsoleQuestion.encode({ ...NAME, ...NOTHING, ...question }).finish())).answer;
}

const output = { output: Buffer.from("login:"), absent: false, failed: "" };
const pinning = { pinning: { cpus: { 0: 7 }, nodes: [1], pageKib: 0 }, absent: false, failed: "" };
const opened = { address: "h:1", absent: false, unavailable: false, failed: "", graphical: false };

test("an agent's answer to the question is passed on", async () => {
  expect(await answerTo({}, (name) => ({ ...name, ...output }))).toMatchObject({ $case: "output" });
  expect(await answerTo({ pinning: true }, (name) => ({ ...name, ...pinning }))).toMatchObject({ $case: "pinning" });
  const interfaces = { interfaces: [] };
  const set = { absent: false, unavailable: false, failed: "" };
  expect(await answerTo({ interfaces }, (name) => ({ ...name, ...set }))).toMatchObject({ $case: "interfacesSet" });
  const password = "secret";
  const changed = { absent: false, unsupported: false, failed: "" };
  const told = async (one: object) => answerTo({ password }, (name) => ({ ...name, ...changed, ...one }));
  expect(await told({})).toEqual({ $case: "passwordChanged", value: true });
  expect(await told({ failed: "it is stopped" })).toEqual({ $case: "passwordRefused", value: "it is stopped" });
  expect(await told({ unsupported: true })).toEqual({ $case: "unavailable", value: true });
  expect(await told({ absent: true })).toEqual({ $case: "absent", value: true });
});

test.each<[string, Partial<ConsoleQuestion>, object]>([
  ["the output of a console", {}, pinning],
  ["the output of a console", {}, opened],
  ["the CPUs of a guest", { pinning: true }, output],
  ["what a guest uses", { diagnostics: true }, pinning],
  ["the interfaces of a guest", { interfaces: { interfaces: [] } }, output],
  ["the interfaces of a guest", { interfaces: { interfaces: [] } }, opened],
  ["the password of a guest", { password: "secret" }, output],
  ["the password of a guest", { password: "secret" }, { absent: false, unavailable: false, failed: "" }],
  ["the interfaces of a guest", { interfaces: { interfaces: [] } }, { absent: false, unsupported: false, failed: "" }],
  [
    "a console that is opened",
    { open: { session: "s", key: Buffer.alloc(32), lifetimeMs: 1, graphical: false } },
    output,
  ],
])("an answer to another question than that for %s is not passed on", async (_, question, says) => {
  expect(await answerTo(question, (name) => ({ ...name, ...says }) as Told)).toEqual({
    $case: "failed",
    value: "the agent of its host gave an answer to another question",
  });
});

test("an answer that is larger than a message of the bus is not passed on", async () => {
  const nodes = Array.from({ length: TOO_MANY }, () => 1);
  const large = { ...pinning, pinning: { ...pinning.pinning, nodes } };
  expect(await answerTo({ pinning: true }, (name) => ({ ...name, ...large }))).toEqual({
    $case: "failed",
    value: "the agent of its host gave an answer that is too large",
  });
  const vcpuTimesUs = Array.from({ length: TOO_MANY }, () => 1);
  const diagnostics = { uptimeS: 1, vcpuTimesUs, disks: [], memoryUsedKib: 1, interfaces: [] };
  expect(
    await answerTo({ diagnostics: true }, (name) => ({ ...name, diagnostics, absent: false, failed: "" })),
  ).toMatchObject({ $case: "failed" });
});

test("guests that are slow to change their interfaces do not keep others from being read", async () => {
  let ask: (question: Uint8Array) => Promise<Uint8Array> = () => Promise.reject(new Error("nobody answers"));
  const clock = new ManualClock();
  const stream = {
    send: ({ body }: ConductorMessage) => {
      if (body?.$case === "readConsole") asker.told({ ...output, host: NAME.host, query: body.value.query }, agent);
    },
    ...{ closed: false, onMessages: () => {}, onClose: () => {}, close: () => {} },
  };
  const agent: AgentConnection = { agentId: "agent", arrival: 1, stream, hosts: new Map() };
  const answer = async (_subject: string, given: typeof ask) => {
    ask = given;
    return { stop: async () => {} };
  };
  const asker = new ConsoleAsker({
    bus: { answer } as Partial<ConductorBus> as ConductorBus,
    ...{ cell: "cell", clock, events: {} as ConductorEvents, registry: { connectionOf: () => agent } },
  });
  await asker.start();
  const asked = async (question: Partial<ConsoleQuestion>) => {
    const bytes = ConsoleQuestion.encode({ ...NAME, ...NOTHING, ...question }).finish();
    return ConsoleAnswer.decode(await ask(bytes)).answer;
  };
  const interfaces = { interfaces: [] };
  const waiting = Array.from({ length: 64 }, () => asked({ interfaces }));
  expect(await asked({ interfaces })).toEqual({ $case: "failed", value: "too many guests are being asked about" });
  expect(await asked({})).toMatchObject({ $case: "output" });
  clock.advance(18_000);
  for (const one of await Promise.all(waiting)) expect(one).toMatchObject({ $case: "failed" });
});
