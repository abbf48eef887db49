import { expect, test } from "vitest";
import { ManualClock } from "./manual-clock.ts";
import { SilentStorageError, StorageGate } from "./storage-gate.ts";

function gateOf(callsMax = 2) {
  const clock = new ManualClock();
  const told: (string | null)[] = [];
  const gate = new StorageGate({
    ...{ name: "the directory /guests", clock, callsMax, silentAfterMs: 10_000 },
    onChanged: (silence) => told.push(silence),
  });
  return { clock, told, gate };
}

/** A call that hangs until it is answered. */
function hanging() {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let isMade = false;
  const call = () => {
    isMade = true;
    return promise;
  };
  return { call, answer: () => resolve("answer"), fail: () => reject(new Error("EIO")), isMade: () => isMade };
}
const settle = () => new Promise((resolve) => setImmediate(resolve));
const SILENCE = "the directory /guests has not answered for 10 s or longer";

test("no more calls hang at a time than allowed, and the others are made when those are answered", async () => {
  const { gate } = gateOf();
  const calls = [hanging(), hanging(), hanging()];
  const answers = calls.map(({ call }) => gate.work(call));
  expect(calls.map(({ isMade }) => isMade())).toEqual([true, true, false]);
  calls[0]?.answer();
  await answers[0];
  expect(calls[2]?.isMade()).toBe(true);
  for (const { answer } of calls) answer();
  expect(await Promise.all(answers)).toEqual(["answer", "answer", "answer"]);
});

test("a storage without an answer is silent: looks are given up, work waits, and both go on when it answers", async () => {
  const { gate, clock, told } = gateOf();
  const [first, look, queued, later] = [hanging(), hanging(), hanging(), hanging()];
  const working = gate.work(first.call);
  const looking = gate.look(look.call);
  const waiting = gate.look(queued.call);
  const waitingWork = gate.work(later.call);
  for (const one of [looking, waiting]) one.catch(() => undefined);
  clock.advance(9_999);
  expect([gate.silence, told]).toEqual([null, []]);
  clock.advance(1);
  expect([gate.silence, told]).toEqual([SILENCE, [SILENCE]]);
  await expect(looking).rejects.toThrow(SilentStorageError);
  await expect(waiting).rejects.toThrow(SILENCE);
  await expect(gate.look(async () => 1)).rejects.toThrow(/repeat this when it answers again/);
  expect(() => gate.refuseSilence()).toThrow(SilentStorageError);
  // The first of the two that hang does not yet show that the storage answers.
  look.answer();
  await settle();
  expect([later.isMade(), queued.isMade(), told.length]).toEqual([false, false, 1]);
  first.answer();
  expect(await working).toBe("answer");
  expect([gate.silence, told]).toEqual([null, [SILENCE, null]]);
  expect([later.isMade(), queued.isMade()]).toEqual([true, false]);
  later.answer();
  await waitingWork;
  expect(await gate.look(async () => 1)).toBe(1);
});

test("a call that fails is an answer", async () => {
  const { gate, clock, told } = gateOf();
  const call = hanging();
  const working = gate.work(call.call);
  clock.advance(10_000);
  call.fail();
  await expect(working).rejects.toThrow("EIO");
  expect([gate.silence, told]).toEqual([null, [SILENCE, null]]);
});

test("a call that reads much is no silence, however long it takes", async () => {
  const { gate, clock } = gateOf();
  const slow = hanging();
  const reading = gate.work(slow.call, { isSlow: true });
  clock.advance(60_000);
  expect(gate.silence).toBeNull();
  slow.answer();
  expect(await reading).toBe("answer");
});

test("slow calls leave places for the others, which pass them, and the next slow one is made when one of them is answered", async () => {
  const { gate } = gateOf(4);
  const slow = [hanging(), hanging(), hanging()];
  const quick = [hanging(), hanging(), hanging()];
  const slowAnswers = slow.map(({ call }) => gate.work(call, { isSlow: true }));
  const answers = quick.map(({ call }) => gate.work(call));
  const made = () => [...slow, ...quick].map(({ isMade }) => isMade());
  expect(made()).toEqual([true, true, false, true, true, false]);
  quick[0]?.answer();
  await answers[0];
  expect(made()).toEqual([true, true, false, true, true, true]);
  quick[1]?.answer();
  await answers[1];
  expect(slow[2]?.isMade()).toBe(false);
  slow[0]?.answer();
  await slowAnswers[0];
  expect(slow[2]?.isMade()).toBe(true);
  for (const { answer } of [...slow, ...quick]) answer();
  expect(await Promise.all([...slowAnswers, ...answers])).toHaveLength(6);
});

test("a storage on which slow calls hang is found silent by the next call, and answers again only to that", async () => {
  const { gate, clock, told } = gateOf(4);
  const slow = Array.from({ length: 6 }, hanging);
  const working = slow.map(({ call }) => gate.work(call, { isSlow: true }));
  const waitingLook = gate.look(async () => "slow", { isSlow: true });
  clock.advance(3_600_000);
  expect([gate.silence, slow.filter(({ isMade }) => isMade()).length]).toEqual([null, 2]);
  const probe = hanging();
  const probing = gate.look(probe.call);
  for (const one of [probing, waitingLook]) one.catch(() => undefined);
  clock.advance(10_000);
  expect([gate.silence, told]).toEqual([SILENCE, [SILENCE]]);
  await expect(probing).rejects.toThrow(SilentStorageError);
  await expect(waitingLook).rejects.toThrow(SilentStorageError);
  slow[0]?.answer();
  await working[0];
  expect([gate.silence, slow[2]?.isMade()]).toEqual([SILENCE, false]);
  probe.answer();
  await expect.poll(() => gate.silence).toBeNull();
  for (const { answer } of slow) answer();
  expect(await Promise.all(working)).toEqual(slow.map(() => "answer"));
});

test("a storage falls silent again when the calls that waited hang, too", async () => {
  const { gate, clock, told } = gateOf(1);
  const [first, second] = [hanging(), hanging()];
  const both = [gate.work(first.call), gate.work(second.call)];
  clock.advance(10_000);
  first.answer();
  await both[0];
  clock.advance(10_000);
  expect(told).toEqual([SILENCE, null, SILENCE]);
  second.answer();
  await both[1];
  expect(gate.silence).toBeNull();
});

test("a process that stood still itself reads the answers before it calls the storage silent", async () => {
  const [timers, told]: [(() => void)[], (string | null)[]] = [[], []];
  let nowMs = 0;
  const setTimer = (_: number, run: () => void) => {
    timers.push(run);
    return { cancel: () => undefined };
  };
  const clock = { monotonic: () => nowMs, setTimer };
  const gate = new StorageGate({ name: "/guests", clock, onChanged: (silence) => told.push(silence) });
  const call = hanging();
  const working = gate.work(call.call);
  nowMs = 60_000;
  timers.shift()?.();
  call.answer();
  await working;
  timers.shift()?.();
  expect([told, timers.length]).toEqual([[], 0]);
});
