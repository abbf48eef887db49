import { expect, test } from "vitest";
import { OrderBinding } from "./order-binding.ts";

test("the end of an abandoned wait does not let a third one begin beside the second", async () => {
  const ends: ((outcome: unknown) => void)[] = [];
  const needs = { meet: () => new Promise((resolve) => ends.push(resolve)), plugged: () => null };
  const after = { uuid: "server", ports: [], volumes: [] };
  const facts = { kind: "attach-volume", after, volume: { volumeId: "volume" } };
  const binding = new OrderBinding(needs as never, facts as never, {} as never);
  let present = 1;
  const ask = (step: number) => {
    const asked = { ask: "attach-volume", step, selection: 0, place: { host: "host", attemptId: "a", items: [] } };
    return binding.holdsUp(
      asked as never,
      () => step === present,
      () => undefined,
    );
  };
  ask(1);
  present = 2;
  ask(2);
  ends[0]?.({ kind: "unwanted" });
  await new Promise(setImmediate);
  expect(ask(2)).toBe(true);
  expect(ends).toHaveLength(2);
});

/** Begins the questions one after the other, each at its step, and returns why their orders may not be given. */
async function asked(asks: readonly string[], needs: object, facts: object): Promise<readonly string[]> {
  const binding = new OrderBinding(needs as never, facts as never, {} as never);
  const reasons: string[] = [];
  for (const [step, ask] of asks.entries()) {
    const place = { host: "host", attemptId: "a", items: [] };
    const end = (failed: string) => reasons.push(failed);
    binding.holdsUp({ ask, step, selection: 0, place } as never, () => true, end);
    await new Promise(setImmediate);
  }
  return reasons;
}

test("a server of which nobody knows which volume its guest has used is not prepared on another host", async () => {
  const volume = { volumeId: "own", replacedBy: "other", inCinder: true };
  const facts = { kind: "evacuate", after: { uuid: "server", ports: [], volumes: [volume] }, volume: null };
  const reasons = await asked(["prepare"], { meet: () => null }, facts);
  expect(reasons).toEqual([
    expect.stringMatching(/unknown whether the guest has used volume own or volume other,.* hard reboot/),
  ]);
});

test.each(["swap-volume", "swap-volume-unconfirmed"])(
  "Cinder is asked before a guest changes over to another volume, and no more once the guest may have done so: %s",
  async (kind) => {
    let questions = 0;
    const confirmReplacement = async () => {
      questions += 1;
      return { kind: "failed", reason: "it is deleted", final: true };
    };
    const volume = { volumeId: "own", replacedBy: "other", inCinder: true };
    const facts = { kind, after: { uuid: "server", ports: [], volumes: [volume] }, volume };
    const needs = { meet: () => null, confirmReplacement };
    expect(await asked(["pivot-volume", "keep-volume", "pivot-volume"], needs, facts)).toEqual(["it is deleted"]);
    expect(questions).toBe(1);
  },
);

test("a source that connects a volume again in the end gets the one that Cinder has under the volume's own id by then", async () => {
  const connected: unknown[] = [];
  const meet = async (server: { readonly volumes: unknown }) => {
    connected.push(server.volumes);
    return { kind: "failed", reason: "no path", final: true };
  };
  const volume = { volumeId: "own", replacedBy: "other", inCinder: true };
  const facts = { kind: "swap-volume-unconfirmed", after: { uuid: "server", ports: [], volumes: [volume] }, volume };
  expect(await asked(["reconnect-at-source"], { meet }, facts)).toEqual(["no path"]);
  expect(connected).toEqual([[{ ...volume, replacedBy: "" }]]);
});

test.each(["start-source", "start-destination", "power"])(
  "Neutron is told of the functions that a host names after %s, and the operation goes on although it does not answer",
  async (ask) => {
    const told: unknown[] = [];
    const meet = (_server: unknown, place: unknown, _need: unknown, wish: unknown) => {
      told.push({ place, wish });
      return Promise.reject(new Error("Neutron does not answer"));
    };
    const facts = { kind: "migrate", after: { uuid: "server", ports: [], portRequests: [], volumes: [] } };
    const binding = new OrderBinding({ meet } as never, facts as never, {} as never);
    const place = { host: "host", attemptId: "a", items: [] };
    const devices = [{ portId: "port", pciSlot: "0000:05:00.1", pciVendorInfo: "", physicalNetwork: "" }];
    await new Promise<string>((end) =>
      binding.afterOrder({ ask, place } as never, { devices: { devices }, volumes: undefined }, end),
    );
    expect(told).toEqual([{ place, wish: { devices } }]);
    await new Promise<string>((end) =>
      binding.afterOrder({ ask, place } as never, { devices: undefined, volumes: undefined }, end),
    );
    expect(told).toHaveLength(1);
  },
);

/** The answers of Cinder to orders for a server with this status that boots from a volume. `urgent`: whether Cinder was asked once only. */
async function startedIn(statusBefore: string, asks: readonly string[], outcome: object, kind = "hard-reboot") {
  const urgent: boolean[] = [];
  const meet = async (_server: unknown, _place: unknown, { isUrgent }: { readonly isUrgent: boolean }) => {
    urgent.push(isUrgent);
    return { kind: "failed", final: true, ...outcome };
  };
  const volumes = [{ volumeId: "root", replacedBy: "", inCinder: true, isRoot: true }];
  const facts = { kind, statusBefore, after: { uuid: "server", ports: [], volumes }, volume: null };
  return { reasons: await asked(asks, { meet }, facts), urgent };
}

test("a guest is started without Cinder's answer, but neither while Cinder fills a volume of its server nor after Cinder has failed to", async () => {
  const orders = ["power", "start-source"];
  expect(await startedIn("ACTIVE", orders, { reason: "silent" })).toEqual({ reasons: ["", ""], urgent: [true, true] });
  const filled = { reason: "still downloading", forbidsStart: true };
  expect(await startedIn("ACTIVE", orders, filled)).toEqual({
    ...{ reasons: [filled.reason, filled.reason], urgent: [true, true] },
  });
});

test.each(["ERROR", "SOFT_DELETED"])(
  "the guest of a server in %s, whose boot volume Cinder may be filling, is started only if Cinder says that it may be",
  async (status) => {
    // A user waits for the reboot. A way back waits for nobody.
    expect(await startedIn(status, ["power", "start-source"], { reason: "silent" })).toEqual({
      ...{ reasons: ["silent", "silent"], urgent: [false, true] },
    });
  },
);

test("the former guest of a server whose boot volume Cinder was to fill is started only when the volume is connected again", async () => {
  const started = (asks: readonly string[]) => startedIn("ACTIVE", asks, { reason: "silent" }, "reimage");
  expect(await started(["hand-over", "reimage-volume", "start-source"])).toEqual({
    ...{ reasons: ["", "silent"], urgent: [true, true] },
  });
  // Another conductor may have got as far as that.
  expect(await started(["start-source"])).toEqual({ reasons: ["silent"], urgent: [true] });
  expect(await started(["hand-over", "start-source"])).toEqual({ reasons: ["", ""], urgent: [true, true] });
});
