import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { eventually } from "../rigs/eventually.ts";
import { interfacesInQemu, obligingNanoImage, type QemuGuestsDir, whyNoQemu } from "../rigs/qemu-guests.ts";
import { WatchedServer } from "../rigs/watched-server.ts";
import type { E2eCell } from "./cell.ts";
import type { Cloud } from "./cloud.ts";
import { useGuestCloud } from "./guest-cloud.ts";
import { isSeen, untilNoneIsMissed } from "./interrupt.ts";

const OBLIGING_IMAGE = "00000000-0000-4000-8000-006f626c6967";
const NETWORK = "7e5ac7a5-1f6a-4a3c-9d4e-4f3c7f1c9a01";
const PATIENT = { everyMs: 50, withinMs: 120_000 };
const TEST_MS = 600_000;
const skipped = whyNoQemu();

interface Attachment {
  readonly port_id: string;
  readonly mac_addr: string;
}

interface Leg {
  readonly what: string;
  readonly isAttached: boolean;
  /** When the agent is killed: as soon as the port is asked for, or when the record is changed. */
  readonly killedWhen: "asked" | "recorded";
}

/** They follow each other: the port is attached, detached, attached and detached. */
const LEGS: readonly Leg[] = [
  { what: "an attachment that is recorded", isAttached: true, killedWhen: "recorded" },
  { what: "a detachment that was just asked for", isAttached: false, killedWhen: "asked" },
  { what: "an attachment that was just asked for", isAttached: true, killedWhen: "asked" },
  { what: "a detachment that is recorded", isAttached: false, killedWhen: "recorded" },
];

describe.skipIf(skipped !== null)(
  `agents that are killed while interfaces change${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let cloud: Cloud;
    let cell: E2eCell;
    let dir: QemuGuestsDir;
    useGuestCloud({ agents: 1, isShared: false }, async (made) => {
      ({ cloud, cell, dir } = made);
      writeFileSync(join(dir.images, `${OBLIGING_IMAGE}.raw`), obligingNanoImage());
    });

    test("give the guest the interfaces of its server's ports while it runs on", { timeout: TEST_MS }, async () => {
      const flavor = await cloud.compute.flavor();
      const id = await cloud.compute.boot({ flavor, image: OBLIGING_IMAGE });
      const server = new WatchedServer(cloud.compute, dir, id);
      const host = await server.settled("ACTIVE");
      await server.ticksOn(host);
      const agent = cell.agentOf(host);
      const path = `/servers/${id}/os-interface`;
      const attached = async () => {
        const answer = await cloud.compute.call("GET", path);
        return ((await answer.json()) as { readonly interfaceAttachments: readonly Attachment[] }).interfaceAttachments;
      };
      const isRecordedAs = (isAttached: boolean) => {
        const interfaces = server.record?.machine.interfaces ?? [];
        return isAttached ? interfaces.length > 0 : interfaces.every(({ isLeaving }) => isLeaving === true);
      };
      const made = await fetch(`${cloud.apiUrl}/network/v2.0/ports`, {
        ...{ method: "POST", headers: { "content-type": "application/json" } },
        body: JSON.stringify({ port: { network_id: NETWORK } }),
      });
      const { port } = (await made.json()) as { readonly port: { readonly id: string } };
      const ask = ({ isAttached }: Leg) =>
        isAttached
          ? cloud.compute.call("POST", path, { interfaceAttachment: { port_id: port.id } })
          : cloud.compute.call("DELETE", `${path}/${port.id}`);
      /** The server has the port, or has lost it. It keeps a port that its guest does not release in time, and one of which nobody knows. Its owner is told to ask again. */
      const isDone = async (leg: Leg, status: number, told: readonly number[]) => {
        expect([leg.what, leg.isAttached ? [200] : told]).toEqual([leg.what, expect.arrayContaining([status])]);
        const has = async () => {
          if ((await attached()).length === (leg.isAttached ? 1 : 0)) return true;
          await ask(leg);
          return false;
        };
        await eventually(`the end of ${leg.what}`, has, PATIENT);
      };
      /** Kills the agent in the middle, and resolves with whether it was the middle. */
      const isHit = async (leg: Leg) => {
        let isOver = false;
        const asked = ask(leg).finally(() => {
          isOver = true;
        });
        const isMiddle = () => leg.killedWhen === "asked" || isRecordedAs(leg.isAttached);
        const wasSeen = await isSeen(leg.what, isMiddle, () => isOver);
        await agent.kill();
        // Without its agent the guest cannot be told of a port that its server gets.
        const isUntold = leg.isAttached && leg.killedWhen === "asked";
        if (isUntold) await asked;
        const wasHit = isUntold ? !isRecordedAs(true) : wasSeen && !isOver;
        await agent.start();
        const { status } = await asked;
        await isDone(leg, status, [202, 409, 503]);
        return wasHit;
      };
      const answers = async () =>
        (await cloud.compute.call("POST", `/servers/${id}/action`, { "os-getConsoleOutput": {} })).ok;
      /** Looks into QEMU, for which the agent is killed, only when the host answers and its agent has nothing left to change. */
      const hasItsPorts = async () => {
        const macs = (await attached()).map(({ mac_addr }) => mac_addr).sort();
        const recorded = server.record?.machine.interfaces ?? [];
        const isAtRest = recorded.every(({ mac, isLeaving }) => macs.includes(mac) && isLeaving !== true);
        if (recorded.length !== macs.length || !isAtRest || !(await answers())) return false;
        let found = { macs: [""], ends: [""] };
        await agent.replace(async () => {
          found = await interfacesInQemu(server.guestAt(host)?.dir ?? "");
        });
        return found.macs.join() === macs.join() && found.ends.length === macs.length;
      };
      const missed = new Set(LEGS);
      await untilNoneIsMissed([LEGS], async () => {
        for (const leg of LEGS) {
          await eventually("the host's answer", answers, PATIENT);
          if (!missed.has(leg)) await isDone(leg, (await ask(leg)).status, [202, 409]);
          else if (await isHit(leg)) missed.delete(leg);
          await eventually(`the server's interfaces in QEMU after ${leg.what}`, hasItsPorts, PATIENT);
        }
        return [[...missed].map(({ what }) => what)];
      });
      await server.ticksOn(host);
      server.expectUnbroken(host);
      await cloud.expectCleanAudit();
    });
  },
);
