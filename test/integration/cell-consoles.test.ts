import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { consoleKeyOf } from "../../adapters/consoles/console-key.ts";
import { ConsoleListener } from "../../adapters/consoles/console-listener.ts";
import { dialConsole } from "../../adapters/consoles/dial-console.ts";
import { cellConsolesSubject } from "../../adapters/nats/streams.ts";
import type { GuestPinning } from "../../core/pinning/guest-pinning.ts";
import { ConsoleAnswer, ConsoleQuestion, type ConsoleSession } from "../../proto/gen/berth/cell.ts";
import type { GuestDiagnostics } from "../../proto/gen/berth/shared.ts";
import { systemClock } from "../../runtime/clock.ts";
import { overriding } from "../../runtime/overriding.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import type { FakeDriver } from "../../services/compute-agent/fake-driver.ts";
import { eventually } from "../rigs/eventually.ts";
import { RfbClient } from "../rigs/rfb-client.ts";
import { SmallCell } from "../rigs/small-cell.ts";

const CELL = "cell-1";
let cell: SmallCell;
beforeEach(async () => {
  cell = await new SmallCell().open();
});
afterEach(() => cell.close());

/** Server 1 runs on host 0. */
async function start(changes?: Partial<Driver>, consoles?: ConsoleListener) {
  const conductor = await cell.startConductor(1);
  const before = (driver: FakeDriver): Driver => (changes === undefined ? driver : overriding<Driver>(driver, changes));
  const agent = await cell.startAgent({ id: "agent-0", hosts: [0], before, ...(consoles && { consoles }) });
  await cell.hostsUp(1);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  await eventually("the guest to run", () => cell.runsOn(1).length === 1);
  return { agent, conductor };
}

/** Lets clients of consoles reach the agent until the test has ended. */
async function listening(): Promise<ConsoleListener> {
  const listen = { host: "127.0.0.1", port: 0 };
  const listener = new ConsoleListener({ clock: systemClock, listen, advertised: null });
  await listener.start();
  onTestFinished(() => listener.close());
  return listener;
}

/** A conductor's answer about the console of the guest of server 1. */
async function consoleOf(
  bytesMax = 1_000,
  open?: ConsoleSession,
  asked: { pinning?: true; diagnostics?: true } = {},
): Promise<ConsoleAnswer["answer"]> {
  const { host, attemptId, uuid: serverUuid } = await cell.server(1);
  const question = {
    host: host ?? "",
    serverUuid,
    attemptId: attemptId ?? "",
    bytesMax,
    open,
    pinning: false,
    diagnostics: false,
    interfaces: undefined,
    revision: 0,
    ...asked,
  };
  const bytes = ConsoleQuestion.encode(question).finish();
  const answer = await cell.ask(cellConsolesSubject(CELL), bytes, { timeoutMs: 10_000 });
  return ConsoleAnswer.decode(answer).answer;
}

async function shown(bytesMax?: number): Promise<string> {
  const answer = await consoleOf(bytesMax);
  if (answer?.$case !== "output") throw new Error(`no output: ${JSON.stringify(answer)}`);
  return Buffer.from(answer.value).toString();
}

test("a guest's console is read while it runs, after a reboot, and when it has stopped", async () => {
  await start();
  const first = await shown();
  expect(first).toMatch(/boot 1: login:\n$/);
  await cell.operate({ server: 1, kind: "reboot" });
  await cell.rest(1);
  expect(await shown(100_000)).toMatch(/boot 1: login:\n(.*\n)*.*boot 2: login:\n$/);
  await cell.operate({ server: 1, kind: "stop" });
  await cell.become(1, "SHUTOFF");
  expect(await shown(7)).toBe("login:\n");
});

test("an answer that is longer than requested is cut, and a driver's error is not reported as an absent console", async () => {
  let answer = async () => new TextEncoder().encode("0123456789");
  await start({ readConsole: () => answer() });
  expect(await shown(4)).toBe("6789");
  answer = () => Promise.reject(new Error("the disk is broken"));
  expect(await consoleOf()).toEqual({ $case: "failed", value: "the disk is broken" });
});

test("a host that has no such guest, and one that is away, are told apart", async () => {
  const { agent } = await start({ readConsole: async () => null });
  expect(await consoleOf()).toEqual({ $case: "absent", value: true });
  agent.cutOff();
  await eventually("the conductor to miss the agent", async () => (await consoleOf())?.$case === "away");
});

test("the host tells which of its CPUs and NUMA nodes a guest has, also of a guest that may use all, and why it cannot", async () => {
  const whole: GuestPinning = {
    ...{ vcpus: [[3], [0, 1], [7]], held: [3, 7], emulator: [], isBound: true, pageKib: 2_048 },
    memory: [
      { memoryMib: 64, hostNode: 1 },
      { memoryMib: 64, hostNode: null },
    ],
  };
  let read = (): GuestPinning | null => whole;
  await start({ pinningOf: () => read() });
  const told = () => consoleOf(0, undefined, { pinning: true });
  // A vCPU that floats has no CPU of its own, and an unknown node is -1.
  const value = { cpus: { 0: 3, 2: 7 }, nodes: [1, -1], pageKib: 2_048 };
  expect(await told()).toEqual({ $case: "pinning", value });
  read = () => null;
  expect(await told()).toEqual({ $case: "pinning", value: { cpus: {}, nodes: [], pageKib: 0 } });
  read = () => {
    throw new Error("guest.json is damaged");
  };
  expect(await told()).toEqual({ $case: "failed", value: "guest.json is damaged" });
});

test("the host tells what it measures of a guest, that it measures nothing, and why it cannot", async () => {
  const disk = { readBytes: 1, readRequests: 2, writeBytes: 3, writeRequests: 4, errors: 0 };
  const measured = { uptimeS: 7, vcpuTimesUs: [9_000_000, 0], disks: [disk], memoryUsedKib: 65_536, interfaces: [] };
  let measure = async (): Promise<GuestDiagnostics | null> => measured;
  await start({ measure: () => measure() });
  const told = () => consoleOf(0, undefined, { diagnostics: true });
  expect(await told()).toEqual({ $case: "diagnostics", value: measured });
  measure = async () => null;
  expect(await told()).toEqual({ $case: "unavailable", value: true });
  measure = () => Promise.reject(new Error("the guest does not run"));
  expect(await told()).toEqual({ $case: "failed", value: "the guest does not run" });
});

test("no more consoles are read at a time than a conductor holds, and those that wait are answered", async () => {
  const { promise, resolve } = Promise.withResolvers<Uint8Array>();
  let reading = 0;
  await start({
    readConsole: () => {
      reading += 1;
      return promise;
    },
  });
  const asked = Array.from({ length: 65 }, () => consoleOf());
  await eventually("the reads", () => reading === 64);
  expect(await asked[64]).toEqual({ $case: "failed", value: "too many guests are being asked about" });
  resolve(new TextEncoder().encode("x"));
  const answers = await Promise.all(asked.slice(0, 64));
  expect(answers.map((answer) => answer?.$case)).toEqual(Array(64).fill("output"));
});

const session = (lifetimeMs = 60_000, graphical = false): ConsoleSession => ({
  session: "s1",
  key: consoleKeyOf("token", "s1"),
  lifetimeMs,
  graphical,
});

test("a running guest's console is opened for the client that has the key, and only while the guest runs", async () => {
  const listener = await listening();
  await start(undefined, listener);
  expect(await consoleOf(0, session())).toEqual({ $case: "opened", value: listener.address });
  const port = Number(listener.address.split(":").at(-1));
  const client = await dialConsole({ host: "127.0.0.1", port, session: "s1", key: consoleKeyOf("token", "s1") });
  let output = "";
  client.on("data", (chunk) => {
    output += String(chunk);
  });
  client.write("typed");
  await eventually("the echo", () => /login:\r\ntyped$/.test(output));
  await cell.operate({ server: 1, kind: "rescue" });
  await cell.rest(1);
  expect(await consoleOf(0, session())).toEqual({ $case: "opened", value: listener.address });
  await cell.operate({ server: 1, kind: "unrescue" });
  await cell.rest(1);
  await cell.operate({ server: 1, kind: "stop" });
  await cell.become(1, "SHUTOFF");
  expect(await consoleOf(0, session())).toEqual({ $case: "absent", value: true });
});

test("a running guest's display is opened beside its serial console, and ends with the guest's run", async () => {
  const listener = await listening();
  await start(undefined, listener);
  const port = Number(listener.address.split(":").at(-1));
  const dial = async (graphical: boolean) => {
    const $case = graphical ? "openedDisplay" : "opened";
    expect(await consoleOf(0, session(60_000, graphical))).toEqual({ $case, value: listener.address });
    return dialConsole({ host: "127.0.0.1", port, session: "s1", key: consoleKeyOf("token", "s1") });
  };
  const display = new RfbClient(await dial(true));
  const serial = await dial(false);
  await display.open();
  expect(await display.frame()).toMatchObject({ width: 32, height: 24 });
  expect(serial.closed).toBe(false);
  await cell.operate({ server: 1, kind: "stop" });
  await cell.become(1, "SHUTOFF");
  await display.ended();
  await eventually("the serial console's end", () => serial.resume().closed);
  expect(await consoleOf(0, session(60_000, true))).toEqual({ $case: "absent", value: true });
});

test("a guest that was built without a display has none to open", async () => {
  const listener = await listening();
  await start({ hasDisplay: () => false }, listener);
  expect(await consoleOf(0, session(60_000, true))).toEqual({ $case: "unavailable", value: true });
});

test("the console of a host that clients cannot reach is unavailable", async () => {
  await start();
  expect(await consoleOf(0, session())).toEqual({ $case: "unavailable", value: true });
});
