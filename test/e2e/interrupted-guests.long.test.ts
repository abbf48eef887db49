import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { NANO_IMAGE_ID } from "../../adapters/qemu/nano-image.ts";
import { eventually } from "../rigs/eventually.ts";
import { hasOpen, obligingNanoImage, otherNanoImage, type QemuGuestsDir, whyNoQemu } from "../rigs/qemu-guests.ts";
import { WatchedServer } from "../rigs/watched-server.ts";
import type { E2eCell } from "./cell.ts";
import type { Cloud } from "./cloud.ts";
import { type GuestCloudOptions, useGuestCloud } from "./guest-cloud.ts";
import { isIdle, isInterrupted, isSeen, untilNoneIsMissed } from "./interrupt.ts";

const RESCUE_IMAGE = "00000000-0000-4000-8000-0000726573ff";
const OBLIGING_IMAGE = "00000000-0000-4000-8000-006f626c6967";
const PATIENT = { everyMs: 50, withinMs: 120_000, isLasting: true };
const HOSTS = 5;
const skipped = whyNoQemu();

/** An action in the middle of which the agent of the guest's host is killed. */
interface Leg {
  readonly action: string;
  readonly value?: unknown;
  /** The server's status at the end. */
  readonly status: string;
  /** Whether the middle is reached. */
  isMiddle(server: WatchedServer): boolean;
}

/** An attachment or a detachment of a volume, and the volume's status at its end. */
interface VolumeLeg {
  readonly what: string;
  readonly status: "in-use" | "available";
  isMiddle(server: WatchedServer, isOpen: boolean): boolean;
  /** When the conductor is halted until the agent is killed, since it would hear of the end too soon after the middle. */
  isHalt?(server: WatchedServer): boolean;
}

const atOnce = () => true;
const leg = (action: string, status: string, isMiddle: Leg["isMiddle"], value?: unknown): Leg => ({
  ...{ action, status, isMiddle, value },
});
const rescue = (isMiddle: Leg["isMiddle"]) => leg("rescue", "RESCUE", isMiddle, { rescue_image_ref: RESCUE_IMAGE });
const shelve = leg("shelve", "SHELVED", ({ record }) => record?.runningIn === null);

/** What is done to a server one after the other, and whether its guest goes on all the time where it was. */
const CHAINS: readonly { readonly what: string; readonly legs: readonly Leg[]; readonly isUnbroken: boolean }[] = [
  {
    ...{ what: "pause and unpause", isUnbroken: true },
    legs: [leg("pause", "PAUSED", atOnce), leg("unpause", "ACTIVE", atOnce)],
  },
  {
    ...{ what: "suspend and resume", isUnbroken: true },
    legs: [
      leg("suspend", "SUSPENDED", atOnce),
      leg("resume", "ACTIVE", ({ record }) => record?.isSuspended === false),
      leg("suspend", "SUSPENDED", ({ record }) => record?.isSuspended === true),
      leg("resume", "ACTIVE", atOnce),
    ],
  },
  {
    ...{ what: "rescue, unrescue, soft reboot and rebuild", isUnbroken: false },
    legs: [
      rescue(({ guests }) => guests.some(({ console }) => /^P$/m.test(console))),
      leg("unrescue", "ACTIVE", ({ record }) => record?.rescue === undefined || record.runningIn === null),
      rescue(({ record }) => record?.rescue !== undefined && record.runningIn !== null),
      leg("unrescue", "ACTIVE", ({ record }) => record?.rescue === undefined),
      leg("reboot", "ACTIVE", atOnce, { type: "SOFT" }),
      // The guest of the rebuild is there, and has not run yet.
      leg("rebuild", "ACTIVE", ({ records }) => records.some(({ hasRun }) => !hasRun), { imageRef: NANO_IMAGE_ID }),
    ],
  },
  {
    ...{ what: "two images", isUnbroken: true },
    legs: [
      leg("createImage", "ACTIVE", ({ record }) => record?.copiesTo !== undefined, {
        name: "first",
      }),
      leg("createImage", "ACTIVE", atOnce, { name: "second" }),
    ],
  },
  {
    ...{ what: "shelve, offload and unshelve", isUnbroken: false },
    legs: [
      shelve,
      leg("unshelve", "ACTIVE", ({ record }) => record?.runningIn != null),
      shelve,
      leg("shelveOffload", "SHELVED_OFFLOADED", ({ record }) => record?.copiesTo !== undefined || record === undefined),
      leg("unshelve", "ACTIVE", ({ record }) => record !== undefined),
    ],
  },
];

describe.skipIf(skipped !== null)(
  `agents of virtual machines${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let cloud: Cloud;
    let cell: E2eCell;
    let dir: QemuGuestsDir;
    let flavor: string;

    const env: GuestCloudOptions["env"] = ({ volumes }) => ({
      // The transfer of the nano guest's memory takes a second.
      BERTH_LIVE_MIGRATION_BANDWIDTH: "1",
      ...{ BERTH_VOLUMES: "simple", BERTH_VOLUME_DIR: volumes },
    });
    useGuestCloud({ agents: HOSTS, isShared: false, env }, async (made) => {
      ({ cloud, cell, dir } = made);
      writeFileSync(join(dir.images, `${RESCUE_IMAGE}.raw`), otherNanoImage());
      writeFileSync(join(dir.images, `${OBLIGING_IMAGE}.raw`), obligingNanoImage());
      flavor = await cloud.compute.flavor();
    });

    const booted = async (host?: string, image = NANO_IMAGE_ID) => {
      const zone = host === undefined ? {} : { zone: `nova:${host}` };
      const id = await cloud.compute.boot({ flavor, image, ...zone });
      const server = new WatchedServer(cloud.compute, dir, id);
      await server.ticksOn(await server.settled("ACTIVE"));
      return server;
    };

    /** Repeats an action that was given up, which left the server as it was, or stopped if the guest had been told to shut down by then. */
    const againAfter = async (server: WatchedServer, status: string | null, given: Omit<Leg, "isMiddle">) => {
      if (status === "SHUTOFF") {
        await server.act("os-start");
        await server.settled("ACTIVE");
      }
      await server.act(given.action, given.value);
      await server.settled(given.status);
    };

    test("that are killed in the middle of orders complete or undo them after their restart, and nothing is lost", async () => {
      const images = () => readdirSync(dir.images).filter((file) => file.endsWith(".qcow2")).length;
      const before = images();
      const missedOf = new Map(CHAINS.map((chain) => [chain, new Set(chain.legs)]));
      /** Goes through a chain with a new server, and kills agents in the middle of the legs that were always missed. */
      const run = async (chain: (typeof CHAINS)[number]) => {
        const { what, legs, isUnbroken } = chain;
        const missed = missedOf.get(chain) ?? new Set();
        const server = await booted(cell.agents[CHAINS.indexOf(chain)]?.hosts[0]);
        let host = (await server.shown()).host;
        const last = legs.findLastIndex((leg) => missed.has(leg));
        for (const leg of legs.slice(0, last + 1)) {
          const { action, value = null, status, isMiddle } = leg;
          await server.act(action, value);
          const isReached = () => isMiddle(server);
          if (missed.has(leg) && (await isSeen(`the middle of ${action}`, isReached, () => isIdle(server)))) {
            host = server.record?.host ?? host;
            if (await isInterrupted(cell, server, cell.agentOf(host))) missed.delete(leg);
          }
          const ended = await server.ended(action, status);
          if (!ended.isDone) await againAfter(server, ended.status, { action, value, status });
          host = (await server.shown()).host || host;
          if (status === "ACTIVE") await server.ticksOn(host);
          expect([what, action, server.guests.length]).toEqual([what, action, status === "SHELVED_OFFLOADED" ? 0 : 1]);
        }
        if (isUnbroken) server.expectUnbroken(host);
        return [...missed].map(({ action }) => `${what}: ${action}`);
      };
      await untilNoneIsMissed(CHAINS, (chains) => Promise.all(chains.map(run)));
      await cloud.expectCleanAudit();
      // Two that were asked for, and that of the offloaded server.
      expect(images() - before).toBeGreaterThanOrEqual(2);
      expect(readdirSync(dir.images).filter((file) => file.endsWith(".part"))).toEqual([]);
      expect(existsSync(join(dir.images, `${NANO_IMAGE_ID}.raw`))).toBe(true);
    });

    test("that are killed in the middle of cold moves complete or undo them, and say so", async () => {
      const middles: readonly [what: string, isMiddle: Leg["isMiddle"], killed: "source" | "destination"][] = [
        ["the destination's guest is built", ({ records }) => records.length === 2, "destination"],
        ["the source's guest is shut down", ({ guests }) => guests.some((one) => /^P$/m.test(one.console)), "source"],
        ["the disk is copied", ({ records }) => records.some((one) => one.handedTo !== null), "source"],
      ];
      const run = async ([what, isMiddle, killed]: (typeof middles)[number]) => {
        const server = await booted();
        const { host: source } = await server.shown();
        await server.act("migrate");
        // A move may also end early by the death of another's agent.
        const isReached = () => isMiddle(server);
        if (!(await isSeen(what, isReached, () => isIdle(server)))) return [what];
        const destination = server.records.find((one) => one.host !== source)?.host ?? source;
        const victim = cell.agentOf(killed === "source" ? source : destination);
        const missed = (await isInterrupted(cell, server, victim)) ? [] : [what];
        const ended = async () => {
          const shown = await server.shown();
          return shown.task === null && ["VERIFY_RESIZE", "ACTIVE"].includes(shown.status ?? "") && shown;
        };
        const { status, host } = await eventually(`the end of the move (${what})`, ended, PATIENT);
        await server.ticksOn(host);
        if (status === "ACTIVE") {
          expect([what, host]).toEqual([what, source]);
          expect(await server.messageOf("migrate")).toBe("Error");
          return missed;
        }
        expect(host).not.toBe(source);
        await server.act("confirmResize");
        await cell.agentOf(source).replace();
        await server.settled("ACTIVE");
        await eventually("one guest", () => server.guests.length === 1, PATIENT);
        await server.ticksOn(host);
        return missed;
      };
      await untilNoneIsMissed(middles, (these) => Promise.all(these.map(run)));
      await cloud.expectCleanAudit();
    });

    test("that are killed while a volume is attached or detached complete or undo this, and the guest runs on with the volumes of its server", async () => {
      const volumes = async (method: string, path: string, body?: object) => {
        const answer = await fetch(`${cloud.apiUrl}/volume/v3/volumes${path}`, {
          ...{ method, headers: { "content-type": "application/json" } },
          ...(body && { body: JSON.stringify(body) }),
        });
        if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
        return (await answer.json()) as { readonly volume: { readonly id: string; readonly status: string } };
      };
      /** Halts the conductor at a moment, and lets it go on after the action. */
      const halted = async (isMoment: () => boolean, isOver: () => Promise<boolean>, act: () => Promise<boolean>) => {
        if (!(await isSeen("the halt", isMoment, isOver))) return false;
        const [conductor] = cell.conductors;
        await conductor?.pause();
        try {
          return await act();
        } finally {
          await conductor?.resume();
        }
      };
      /** Asks until the volume has the status, if wanted kills the agent in the middle of the first time, and looks whether the guest agrees. */
      const isHit = async (server: WatchedServer, volumeId: string, leg: VolumeLeg, isKilled: boolean) => {
        const path = `/servers/${server.id}/os-volume_attachments`;
        const file = join(dir.volumes, `volume-${volumeId}.raw`);
        const isOpen = () => server.guests.some((guest) => hasOpen(guest.dir, file));
        const { host } = await server.shown();
        let status = "";
        let isMiddleHit = false;
        for (let tries = 0; status !== leg.status; tries += 1) {
          expect([leg, tries]).toEqual([leg, expect.toSatisfy((count: number) => count < 5)]);
          const answer =
            leg.status === "in-use"
              ? await cloud.compute.call("POST", path, { volumeAttachment: { volumeId } })
              : await cloud.compute.call("DELETE", `${path}/${volumeId}`);
          expect([leg.what, answer.status]).toEqual([leg.what, leg.status === "in-use" ? 200 : 202]);
          const isSettled = async () => {
            const { volume } = await volumes("GET", `/${volumeId}`);
            return ["in-use", "available"].includes(volume.status) && volume.status;
          };
          if (tries === 0 && isKilled) {
            const isReached = () => leg.isMiddle(server, isOpen());
            const isOver = async () => (await isSettled()) === leg.status;
            const kill = async () =>
              (await isSeen(leg.what, isReached, isOver)) && (await isInterrupted(cell, server, cell.agentOf(host)));
            isMiddleHit = await (leg.isHalt ? halted(() => leg.isHalt?.(server) === true, isOver, kill) : kill());
          }
          status = await eventually(`the end of ${leg.what}`, isSettled, PATIENT);
        }
        await eventually(`the guest after ${leg.what}`, () => isOpen() === (leg.status === "in-use"), PATIENT);
        await server.ticksOn(host);
        server.expectUnbroken(host);
        return isMiddleHit;
      };
      const isRecorded = ({ record }: WatchedServer) => (record?.volumes ?? []).length > 0;
      const legs: readonly VolumeLeg[] = [
        { what: "an attachment", status: "in-use", isMiddle: isRecorded },
        { what: "a detachment", status: "available", isMiddle: (_, isOpen) => !isOpen },
        {
          ...{ what: "an attachment that QEMU has made", status: "in-use" },
          ...{ isHalt: isRecorded, isMiddle: (_, isOpen) => isOpen },
        },
        { what: "a detachment that was just asked for", status: "available", isMiddle: atOnce },
      ];
      const missed = new Set(legs);
      const run = async () => {
        const server = await booted();
        const { volume } = await volumes("POST", "", { volume: { size: 1 } });
        for (const leg of legs) if (await isHit(server, volume.id, leg, missed.has(leg))) missed.delete(leg);
        return [...missed].map(({ what }) => what);
      };
      await untilNoneIsMissed([legs], async () => [await run()]);
      await cloud.expectCleanAudit();
    });

    test("send a guest the interrupt of a crash dump once, also when they are killed on the way, or report it", async () => {
      const server = await booted(undefined, OBLIGING_IMAGE);
      const { host } = await server.shown();
      const interrupts = () => server.guestAt(host)?.console.match(/^N$/gm)?.length ?? 0;
      await server.act("trigger_crash_dump");
      expect(await server.ended("trigger_crash_dump", "ACTIVE")).toEqual({ isDone: true, status: "ACTIVE" });
      await eventually("the guest's answer to the interrupt", () => interrupts() === 1, PATIENT);
      const run = async () => {
        const before = interrupts();
        await server.act("trigger_crash_dump");
        const isHit = await isInterrupted(cell, server, cell.agentOf(host));
        const { isDone, status } = await server.ended("trigger_crash_dump", "ACTIVE");
        expect(status).toBe("ACTIVE");
        if (isDone) await eventually("the guest's answer", () => interrupts() > before, PATIENT);
        await server.ticksOn(host);
        expect([isDone, interrupts() - before]).toEqual([
          isDone,
          isDone ? 1 : expect.toSatisfy((sent: number) => sent <= 1),
        ]);
        return isHit ? [] : ["a crash dump that was just asked for"];
      };
      await untilNoneIsMissed(["all"], async () => [await run()]);
      server.expectUnbroken(host);
      await cloud.expectCleanAudit();
    });

    test("complete a live move that is forced to its end, and the guest goes on at the other host without a gap", async () => {
      for (let tries = 0; tries < 5; tries += 1) {
        const server = await booted();
        const { host: source } = await server.shown();
        const seen = server.watchTicks();
        onTestFinished(() => seen.stop());
        await server.act("os-migrateLive", { host: null, block_migration: "auto" });
        const isBegun = () => server.records.some(({ handedTo }) => handedTo !== null);
        const isOver = () => !server.records.some((one) => one.host === source);
        await isSeen("the hand-over", isBegun, isOver);
        const answered = await server.forceMigration();
        const host = await server.settled("ACTIVE");
        await eventually("one guest", () => server.guests.length === 1, PATIENT);
        await server.ticksOn(host);
        const all = seen.read();
        expect([host, all]).not.toEqual([source, all]);
        // The last tick before the switch-over may not have been seen.
        expect([all.length, (all.at(-1) ?? 0) - all.length]).toEqual([
          new Set(all).size,
          expect.toSatisfy((missing: number) => missing <= 1),
        ]);
        if (answered === 202) return cloud.expectCleanAudit();
        // It was over before it could be forced.
        expect([400, 404, 409]).toContain(answered);
      }
      throw new Error("no live move was seen under way");
    });

    test("abort live moves at each of their stages, and the guest goes on at one host without a gap", async () => {
      const stages: readonly [what: string, isReached: Leg["isMiddle"]][] = [
        ["it is accepted", atOnce],
        ["the destination's guest is recorded", ({ records }) => records.length === 2],
        ["the destination's guest waits", ({ records }) => records.some(({ listensAt }) => listensAt !== "")],
        ["the source hands over", ({ records }) => records.some(({ handedTo }) => handedTo !== null)],
        ["the source has handed over", ({ records }) => records.some(({ handedTo }) => handedTo?.isDone === true)],
      ];
      const answers = new Set<number>();
      const run = async ([what, isReached]: (typeof stages)[number]) => {
        const server = await booted();
        const { host: source } = await server.shown();
        const seen = server.watchTicks();
        onTestFinished(() => seen.stop());
        await server.act("os-migrateLive", { host: null, block_migration: "auto" });
        // A move that is over leaves one guest.
        const isOver = () => !server.records.some((one) => one.host === source);
        const isHit = await isSeen(what, () => isReached(server), isOver);
        const answered = await server.abortMigration();
        answers.add(answered);
        const host = await server.settled("ACTIVE");
        await eventually("one guest", () => server.guests.length === 1, PATIENT);
        await server.ticksOn(host);
        const all = seen.read();
        if (answered === 202) expect([what, host]).toEqual([what, source]);
        else expect([what, [400, 404, 409]]).toEqual([what, expect.arrayContaining([answered])]);
        // Each tick is in one log only. The last one before the switch-over may not have been seen.
        expect([what, all]).toEqual([what, [...new Set(all)]]);
        const missing = (all.at(-1) ?? 0) - all.length;
        expect([what, missing]).toEqual([what, host === source ? 0 : expect.toSatisfy((count: number) => count <= 1)]);
        return isHit ? [] : [what];
      };
      await untilNoneIsMissed(stages, (these) => Promise.all(these.map(run)));
      expect(answers).toContain(202);
      await cloud.expectCleanAudit();
    });
  },
);
