import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { readGuestRecord } from "../../../adapters/qemu/guest-record.ts";
import { NANO_IMAGE_ID } from "../../../adapters/qemu/nano-image.ts";
import { findRunningQemu } from "../../../adapters/qemu/running-qemu.ts";
import { systemClock } from "../../../runtime/clock.ts";
import { readSettings } from "../../../runtime/settings.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import {
  guestsOnDisk,
  makeQemuGuestsDir,
  NANO_FLAVOR,
  type QemuGuestsDir,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import type { Driver, PrepareOrder } from "../driver.ts";
import { openDriver } from "../open-driver.ts";
import { agentDeclaration } from "../settings.ts";

const NEVER = new AbortController().signal;
const PATIENT = { everyMs: 20, withinMs: 60_000 };
const QUIET = { signal: NEVER, onStep: () => undefined };
const AES = "HW_CPU_X86_AESNI";
const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(
  `virtual machines of a host with several CPU models${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let dirs: QemuGuestsDir[] = [];
    beforeEach(() => {
      dirs = [];
    });
    afterEach(async () => {
      for (const dir of dirs) await dir.remove();
    });

    /** The driver of an agent with these settings, on a machine of its own. */
    async function driverWith(
      ...more: readonly string[]
    ): Promise<{ readonly driver: Driver; readonly dir: QemuGuestsDir }> {
      const dir = makeQemuGuestsDir();
      dirs.push(dir);
      const paths = ["--instances-path", dir.instancesPath, "--images-path", dir.images, "--data-dir", dir.path];
      const own = ["--agent-id", "a", "--conductors", "c:1", "--hosts", "1", "--driver", "qemu", "--accel", "tcg"];
      const read = readSettings(agentDeclaration, { argv: [...own, ...paths, ...more], env: {} });
      if (read.kind === "help") throw new Error("no help was asked for");
      const surroundings = { crash: () => {}, loseConnections: () => {} };
      const opened = await openDriver(read.settings, {
        ...{ clock: systemClock, logger: pino({ level: "silent" }) },
        ...surroundings,
      });
      onTestFinished(() => opened.close());
      return { driver: opened.driver, dir };
    }

    function orderOf(index: number, extraSpecs: Readonly<Record<string, string>>, more: Partial<PrepareOrder> = {}) {
      const server = serverSpec(index, { flavor: { ...NANO_FLAVOR, extraSpecs }, imageRef: NANO_IMAGE_ID });
      const { uuid: serverUuid } = server;
      return {
        ...{ host: "h1", serverUuid, attemptId: `task/h1/${index}`, server, allocation: undefined, movedFrom: null },
        ...more,
      };
    }

    /** The value of `-cpu` of the server's QEMU. */
    function cpuOf(dir: QemuGuestsDir, { serverUuid }: PrepareOrder): string | undefined {
      const [guest] = guestsOnDisk(dir.path, serverUuid);
      const running = findRunningQemu(guest?.dir ?? "");
      const words = readFileSync(`/proc/${running?.pid}/cmdline`, "utf8").split("\0");
      return words[words.indexOf("-cpu") + 1];
    }

    test("have the first model that has the CPU traits of their flavor, with the extra flags", async () => {
      const { driver, dir } = await driverWith(
        ...["--cpu-models", "qemu64,Cascadelake-Server,Nehalem,Westmere", "--cpu-model-extra-flags", "SSSE3,-popcnt"],
      );
      const cases = [
        [{}, "qemu64,+ssse3,-popcnt,enforce"],
        // The extra flags count, and TCG cannot give Cascadelake-Server.
        [{ "trait:HW_CPU_X86_SSSE3": "required" }, "qemu64,+ssse3,-popcnt,enforce"],
        [{ "trait:HW_CPU_X86_SSE42": "required" }, "Nehalem,+ssse3,-popcnt,enforce"],
        [{ "trait_1:HW_CPU_X86_AESNI": "required", [`trait:${AES}`]: "required" }, "Westmere,+ssse3,-popcnt,enforce"],
      ] as const;
      for (const [index, [extraSpecs, cpu]] of cases.entries()) {
        const order = orderOf(index + 1, extraSpecs);
        expect(await driver.prepare(order, QUIET)).toMatchObject({ kind: "prepared" });
        expect(cpuOf(dir, order)).toBe(cpu);
        await driver.destroy(order, NEVER);
      }
      expect(await driver.prepare(orderOf(9, { "trait:HW_CPU_X86_AVX512F": "required" }), QUIET)).toMatchObject({
        ...{ kind: "failed", failure: "reschedule" },
        reason: expect.stringMatching(/no CPU model of the host has the traits HW_CPU_X86_AVX512F .* Westmere/),
      });
    });

    test("stay in the control group of the agent, whose limits they share", async () => {
      const { driver, dir } = await driverWith();
      const order = orderOf(1, {});
      await driver.prepare(order, QUIET);
      const running = findRunningQemu(guestsOnDisk(dir.path, order.serverUuid)[0]?.dir ?? "");
      expect(readFileSync(`/proc/${running?.pid}/cgroup`, "utf8")).toBe(readFileSync("/proc/self/cgroup", "utf8"));
      await driver.destroy(order, NEVER);
    });

    test.each([
      ["the same models", ["--cpu-models", "qemu64,Westmere"], null],
      ["another order of the models", ["--cpu-models", "Westmere,qemu64"], "host h2 prepared one with Westmere"],
      ["other flags", ["--cpu-models", "qemu64", "--cpu-model-extra-flags", "aes"], "prepared one with qemu64,+aes"],
    ])("move live to a host with %s only if their CPU stays the same", async (_, settings, refusal) => {
      const here = await driverWith("--cpu-models", "qemu64,Westmere");
      const there = await driverWith(...settings);
      const source = orderOf(1, {});
      const destination = orderOf(
        1,
        {},
        {
          ...{ host: "h2", attemptId: "task/h2/1" },
          movedFrom: { host: "h1", attemptId: source.attemptId, by: "live-migrate" },
        },
      );
      await here.driver.prepare(source, QUIET);
      await here.driver.start(source, NEVER);
      const ticks = () => guestsOnDisk(here.dir.path, source.serverUuid)[0]?.ticks.length ?? 0;
      await eventually("a tick", () => ticks() > 0, PATIENT);
      const outcome = await there.driver.prepare(destination, QUIET);
      const listensAt = (outcome.kind === "prepared" && outcome.listensAt) || "";
      const order = { ...source, toHost: "h2", toAttemptId: destination.attemptId, live: true, force: false };
      const moving = here.driver.handOff({ ...order, listensAt, orderId: "o" }, NEVER, () => undefined);
      if (refusal === null) await moving;
      else {
        await expect(moving).rejects.toThrow(refusal);
        const before = ticks();
        await eventually("a tick of the guest that stays", () => ticks() > before, PATIENT);
        expect(
          readGuestRecord(join(guestsOnDisk(here.dir.path, source.serverUuid)[0]?.dir ?? ""))?.handedTo,
        ).toBeNull();
      }
      await here.driver.destroy(source, NEVER);
      await there.driver.destroy(destination, NEVER);
    });
  },
);
