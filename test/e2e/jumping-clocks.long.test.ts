import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { NANO_IMAGE_ID } from "../../adapters/qemu/nano-image.ts";
import { findRunningQemu } from "../../adapters/qemu/running-qemu.ts";
import type { LocalAgent } from "../../chaos/local/local-agent.ts";
import type { LocalService } from "../../chaos/local/local-service.ts";
import { eventually } from "../rigs/eventually.ts";
import { type QemuGuestsDir, whyNoQemu } from "../rigs/qemu-guests.ts";
import { WatchedServer } from "../rigs/watched-server.ts";
import type { E2eCell } from "./cell.ts";
import type { Cloud } from "./cloud.ts";
import { type GuestCloudOptions, useGuestCloud } from "./guest-cloud.ts";

const HOUR_MS = 3_600_000;
const CLOCK = join(import.meta.dirname, "../rigs/jumping-clock.ts");
const PATIENT = { everyMs: 50, withinMs: 120_000, isLasting: true };
const TEST_MS = 600_000;
const LOG_LINES = 10_000;
const clockOf = (agentId: string, { path }: QemuGuestsDir) => join(path, `${agentId}.clock`);
const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(
  `agents whose wall clocks jump${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let cloud: Cloud;
    let cell: E2eCell;
    let dir: QemuGuestsDir;
    let flavor: string;

    const agentEnv: GuestCloudOptions["agentEnv"] = (id, guests) => ({
      NODE_OPTIONS: `--import=${CLOCK}`,
      JUMPING_CLOCK_FILE: clockOf(id, guests),
    });
    // The patience of the conductors is shorter than the hour of a jump.
    useGuestCloud({ agents: 2, isShared: false, agentEnv }, async (made) => {
      ({ cloud, cell, dir } = made);
      flavor = await cloud.compute.flavor();
    });

    /** Sets the wall clock of an agent's machine this far ahead of the true time. */
    const jump = ({ id }: LocalAgent, aheadMs: number) => writeFileSync(clockOf(id, dir), String(aheadMs));
    /** How far ahead the agent's clock was when it last wrote to its journal, in hours. */
    const hoursAhead = ({ journal }: LocalAgent): number => {
      const times = [...readFileSync(journal, "utf8").matchAll(/"atMs":(\d+)/g)].map(([, ms]) => Number(ms));
      // Without a sign for zero.
      return Math.round(((times.at(-1) ?? 0) - Date.now()) / HOUR_MS) + 0;
    };
    const booted = async (host: string) => {
      const id = await cloud.compute.boot({ flavor, image: NANO_IMAGE_ID, zone: `nova:${host}` });
      const server = new WatchedServer(cloud.compute, dir, id);
      await server.ticksOn(await server.settled("ACTIVE"));
      return server;
    };
    const hosts = () => cell.query<object>("select name, up from hosts order by name");
    const say = (services: readonly LocalService[]) => services.map((one) => one.logSinceMark(LOG_LINES)).join("\n");

    test(
      "by an hour, forward and back, while guests run and when the agents start again, lose no guest, no host and no order",
      async () => {
        const [first, second] = cell.agents;
        if (first === undefined || second === undefined) throw new Error("two agents are missing");
        const hostOf = (agent: LocalAgent) => agent.hosts[0] ?? "";
        const untouched = [await booted(hostOf(first)), await booted(hostOf(second))];
        const worker = await booted(hostOf(first));
        const processes = () => untouched.map(({ guests }) => findRunningQemu(guests[0]?.dir ?? ""));
        const before = processes();
        const up = await hosts();
        /** What is done at each time of the clocks. The worker's host is asked for it, and the other one for the move. */
        const work = async () => {
          const ticks = async (server: WatchedServer) => {
            const { host } = await server.shown();
            // Several heartbeats fit into this time.
            const ticked = server.ticksAt(host).length;
            await eventually("three ticks", () => server.ticksAt(host).length > ticked + 3, PATIENT);
          };
          await Promise.all(untouched.map(ticks));
          await worker.act("os-stop");
          await worker.settled("SHUTOFF");
          await worker.act("os-start");
          await worker.ticksOn(await worker.settled("ACTIVE"));
          await worker.act("os-migrateLive", { host: null, block_migration: "auto" });
          await worker.ticksOn(await worker.settled("ACTIVE"));
          const brief = await booted(hostOf(first));
          await cloud.compute.delete(brief.id);
          await cloud.compute.gone([brief.id]);
        };
        await work();
        expect([hoursAhead(first), hoursAhead(second)]).toEqual([0, 0]);
        for (const hours of [1, -1, 0]) {
          jump(first, hours * HOUR_MS);
          jump(second, -hours * HOUR_MS);
          await work();
          expect([hoursAhead(first), hoursAhead(second)]).toEqual([hours, hours === 0 ? 0 : -hours]);
        }
        expect(await hosts()).toEqual(up);
        expect(say(cell.conductors)).not.toContain("hosts are down");
        expect(say(cell.agents)).not.toMatch(/was removed|state in which the agent left it/);

        // The journals have records of the future for agents that start again.
        jump(first, HOUR_MS);
        jump(second, HOUR_MS);
        await work();
        jump(first, -HOUR_MS);
        jump(second, -HOUR_MS);
        for (const agent of cell.agents) await agent.replace();
        await cell.hostsUp();
        await work();
        expect(processes()).toEqual(before);
        for (const server of untouched) {
          const { host, status } = await server.shown();
          const ticks = server.ticksAt(host);
          expect([status, ticks]).toEqual(["ACTIVE", ticks.map((_, index) => index + 1)]);
        }
        expect(say(cell.agents)).not.toMatch(/was removed|state in which the agent left it/);
        await cloud.expectCleanAudit();
      },
      TEST_MS,
    );
  },
);
