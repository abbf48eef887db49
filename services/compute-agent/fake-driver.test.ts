import { describe, expect, test } from "vitest";
import { type AllocationRequest, ServerVolume } from "../../proto/gen/berth/shared.ts";
import { systemClock } from "../../runtime/clock.ts";
import { serverSpec } from "../../test/contract/cell-fixtures.ts";
import { driverContract } from "../../test/contract/driver.contract.ts";
import { FakeDriver } from "./fake-driver.ts";
import type { FakeScript } from "./fake-script.ts";
import { NO_SHARE } from "./fake-volume-files.ts";

const NEVER = new AbortController().signal;

interface Told {
  readonly driver: FakeDriver;
  readonly told: string[];
}

function driverOf(script: FakeScript, { seed = 1, byMetadata = true } = {}): Told {
  const told: string[] = [];
  const driver = new FakeDriver({
    clock: systemClock,
    seed,
    scripts: new Map([["h", script]]),
    byMetadata,
    crash: () => told.push("crash"),
    loseConnections: () => told.push("lost"),
  });
  return { driver, told };
}

function prepare(
  { driver, told }: Told,
  attempt: number,
  options: { fake?: string; signal?: AbortSignal; selection?: number; allocation?: AllocationRequest } = {},
) {
  const metadata: Record<string, string> = options.fake === undefined ? {} : { "berth:fake": options.fake };
  const order = {
    host: "h",
    serverUuid: `s${attempt}`,
    attemptId: `t${attempt}/${options.selection ?? 0}`,
    server: serverSpec(attempt, { metadata }),
    allocation: options.allocation,
    movedFrom: null,
  };
  const signal = options.signal ?? new AbortController().signal;
  return driver.prepare(order, { signal, onStep: (step) => told.push(step) });
}

driverContract("that pretends", async () => ({
  hosts: ["h", "other"],
  open: async () => driverOf({}).driver,
  server: (index) => serverSpec(index, {}),
  close: async () => {},
}));

describe("the fake driver", () => {
  test("forgets the files of a volume that a guest no longer has", async () => {
    const opened: string[] = [];
    const share = { ...NO_SHARE, opened: ([file = ""]: readonly string[]) => void opened.push(file) };
    const driver = new FakeDriver({
      ...{ clock: systemClock, seed: 1, scripts: new Map(), byMetadata: true, share },
      ...{ crash: () => {}, loseConnections: () => {} },
    });
    await prepare({ driver, told: [] }, 1);
    const guest = { host: "h", serverUuid: "s1", attemptId: "t1/0" };
    const volume = ServerVolume.fromPartial({ volumeId: "v", connection: JSON.stringify({ name: "file" }) });
    await driver.attachVolume(guest, volume, NEVER);
    await driver.start(guest, NEVER);
    await driver.detachVolume(guest, "v", NEVER);
    await driver.power(guest, "stop", NEVER);
    await driver.power(guest, "start", NEVER);
    expect([opened, driver.guests()]).toEqual([["file"], [{ ...guest, running: true }]]);
  });

  test("records the devices that a guest's claim names", async () => {
    const made = driverOf({});
    const device = { provider: "card", resourceClass: "SRIOV_NET_VF", amount: 2 };
    const items = [{ provider: "root", resourceClass: "VCPU", amount: 1 }, device];
    await prepare(made, 1, { allocation: { items, mappings: {} } });
    expect(made.driver.guests()).toMatchObject([{ serverUuid: "s1", devices: [device] }]);
  });

  test("prepares at once by default, starts and destroys", async () => {
    const made = driverOf({});
    expect(await prepare(made, 1)).toEqual({ kind: "prepared" });
    const guest = { host: "h", serverUuid: "s1", attemptId: "t1/0" };
    expect(made.driver.guests()).toEqual([{ ...guest, running: false }]);
    await made.driver.start(guest, NEVER);
    expect(made.driver.guests()).toEqual([{ ...guest, running: true }]);
    await made.driver.destroy(guest, NEVER);
    await made.driver.destroy(guest, NEVER);
    expect(made.driver.guests()).toEqual([]);
  });

  test("ignores a script in a server's metadata unless metadata scripts are enabled", async () => {
    const made = driverOf({}, { byMetadata: false });
    for (const fake of [JSON.stringify({ outcome: "crash" }), "no JSON"])
      expect(await prepare(made, 1, { fake })).toEqual({ kind: "prepared" });
    expect(made.told).toEqual([]);
  });

  test("fails the first builds of a host, the first selections of a server", async () => {
    const made = driverOf({ outcome: "reschedule", first: 2 });
    const kinds = [];
    for (const attempt of [1, 2, 3]) kinds.push((await prepare(made, attempt)).kind);
    expect(kinds).toEqual(["failed", "failed", "prepared"]);
    const fake = JSON.stringify({ outcome: "abort", first: 1, reason: "bad image" });
    expect(await prepare(made, 4, { fake })).toEqual({ kind: "failed", failure: "abort", reason: "bad image" });
    expect(await prepare(made, 4, { fake, selection: 1 })).toEqual({ kind: "prepared" });
  });

  test("fails about the configured share of builds, and the same ones for the same seed", async () => {
    const failures = async (seed: number) => {
      const made = driverOf({ outcome: "reschedule", probability: 0.2 }, { seed });
      const failed = [];
      for (let attempt = 0; attempt < 1_000; attempt += 1)
        if ((await prepare(made, attempt)).kind === "failed") failed.push(attempt);
      return failed;
    };
    const [once, again, other] = [await failures(1), await failures(1), await failures(2)];
    expect(again).toEqual(once);
    expect(other).not.toEqual(once);
    expect(once.length).toBeGreaterThan(130);
    expect(once.length).toBeLessThan(270);
  });

  test.each(["hang", "crash"] as const)("told to %s, ends only when it is aborted", async (outcome) => {
    const made = driverOf({ outcome });
    const cancel = new AbortController();
    const build = prepare(made, 1, { signal: cancel.signal });
    cancel.abort();
    await expect(build).rejects.toThrow("given up");
    expect(made.told).toEqual(outcome === "crash" ? ["crash"] : []);
  });

  test("a lie breaks the connections and reports an existing guest as failed", async () => {
    const made = driverOf({ outcome: "lie" });
    expect((await prepare(made, 1)).kind).toBe("failed");
    expect([made.told, made.driver.guests().length]).toEqual([["lost"], 1]);
  });

  test("reports its steps", async () => {
    const made = driverOf({ steps: ["image", "disk"], duration_ms: 3 });
    await prepare(made, 1);
    expect(made.told).toEqual(["image", "disk"]);
  });

  test.each([
    ["{", "the text is not JSON"],
    ['{"outcome":"explode"}', "/outcome"],
    ['{"probability":2}', "/probability"],
    ['{"typo":1}', "/typo is not known"],
  ])("refuses the script %s permanently", async (fake, why) => {
    expect(await prepare(driverOf({}), 1, { fake })).toMatchObject({
      failure: "abort",
      reason: expect.stringContaining(why),
    });
  });
});

test("a guest that pretends tells of its CPUs, disk and interfaces, of which it has used nothing", async () => {
  const { driver, told } = driverOf({});
  await prepare({ driver, told }, 1);
  const name = { host: "h", serverUuid: "s1", attemptId: "t1/0" };
  await expect(driver.measure(name)).rejects.toThrow("does not run");
  await driver.start(name, NEVER);
  await driver.setInterfaces(name, [{ portId: "p1" }, { portId: "p2" }], NEVER);
  expect(await driver.measure(name)).toMatchObject({
    ...{ vcpuTimesUs: [0], disks: [{ readBytes: 0 }] },
    interfaces: [
      { portId: "p1", rxBytes: 0 },
      { portId: "p2", txDropped: 0 },
    ],
  });
  await expect(driver.measure({ ...name, attemptId: "t2/0" })).rejects.toThrow("does not run");
});
