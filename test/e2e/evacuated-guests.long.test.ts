import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { NANO_IMAGE_ID } from "../../adapters/qemu/nano-image.ts";
import { eventually } from "../rigs/eventually.ts";
import { killQemu, type QemuGuestsDir, whyNoQemu } from "../rigs/qemu-guests.ts";
import { WatchedServer } from "../rigs/watched-server.ts";
import type { E2eCell } from "./cell.ts";
import type { Cloud } from "./cloud.ts";
import { useGuestCloud } from "./guest-cloud.ts";
import { isIdle, isInterrupted, isSeen, untilNoneIsMissed } from "./interrupt.ts";

const PATIENT = { everyMs: 50, withinMs: 120_000 };
const TEST_MS = 600_000;
const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(
  `evacuations of virtual machines${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let cloud: Cloud;
    let cell: E2eCell;
    let dir: QemuGuestsDir;
    let flavor: string;

    // Another host has a dead host's disks.
    useGuestCloud({ agents: 2, isShared: true }, async (made) => {
      ({ cloud, cell, dir } = made);
      flavor = await cloud.compute.flavor();
    });

    /** Declares the host fenced, or revokes that. */
    const forceDown = async (host: string, isForced: boolean) => {
      const listed = await cloud.compute.call("GET", `/os-services?host=${host}&binary=nova-compute`);
      const { services } = (await listed.json()) as { readonly services: readonly { readonly id: string }[] };
      const path = `/os-services/${services[0]?.id}`;
      expect((await cloud.compute.call("PUT", path, { forced_down: isForced })).status).toBe(200);
    };
    const inDisk = (server: WatchedServer, host: string, command: string) =>
      execFileSync("qemu-io", ["-f", "qcow2", "-c", command, join(server.guestAt(host)?.dir ?? "", "disk0.qcow2")], {
        stdio: "pipe",
      });

    test(
      "fail while the old guest still runs; when it has ended, the server continues elsewhere with its disk, although the destination's agent is killed, and the old host gives its guest up when it is back",
      async () => {
        const server = new WatchedServer(
          cloud.compute,
          dir,
          await cloud.compute.boot({ flavor, image: NANO_IMAGE_ID }),
        );
        const source = await server.settled("ACTIVE");
        await server.ticksOn(source);
        await server.act("os-stop");
        await server.settled("SHUTOFF");
        inDisk(server, source, "write -P 0x5a 40M 64k");
        await server.act("os-start");
        await server.ticksOn(await server.settled("ACTIVE"));

        // The host is called dead, and its guest runs on: the operator has not fenced it.
        await cell.agentOf(source).kill();
        await forceDown(source, true);
        await server.act("evacuate", {});
        const ended = async () =>
          (await server.messageOf("evacuate")) === "Error" && (await server.shown()).task === null;
        await eventually("the end of the evacuation", ended, PATIENT);
        await server.ticksOn(source);
        expect(await server.reasonOf("evacuate")).toMatch(/write. lock.*another process/);
        expect((await server.shown()).host).toBe(source);
        await eventually("one guest", () => server.guests.length === 1, PATIENT);

        /** Evacuates the server from a host whose agent is dead, and kills the other host's agent when that has begun to build the guest. */
        const isEvacuated = async (from: string, to: string) => {
          killQemu(server.guestAt(from)?.dir ?? "");
          const last = server.guestAt(from)?.ticks.length ?? 0;
          await server.act("evacuate", {});
          const isReached = () => server.guestAt(to) !== undefined;
          const isBegun = await isSeen("the new guest", isReached, () => isIdle(server));
          const isHit = isBegun && (await isInterrupted(cell, server, cell.agentOf(to)));
          const host = await eventually(
            "the server elsewhere",
            async () => {
              const shown = await server.shown();
              if (shown.task === null && shown.host === from) await server.act("evacuate", {});
              return shown.task === null && shown.status === "ACTIVE" && shown.host !== from && shown.host;
            },
            PATIENT,
          );
          expect(host).toBe(to);
          await server.ticksOn(to);
          expect(server.guestAt(from)?.ticks.length).toBe(last);

          await cell.agentOf(from).start();
          await forceDown(from, false);
          await cloud.makeWhole();
          await eventually("one guest", () => server.guests.length === 1, PATIENT);
          await cloud.expectCleanAudit();
          expect(await cell.holders(server.id)).toEqual([to]);
          await server.ticksOn(to);
          return isHit;
        };
        let [here, destination] = [
          source,
          cell.agents.flatMap(({ hosts }) => hosts).find((host) => host !== source) ?? "",
        ];
        let isFirst = true;
        await untilNoneIsMissed(["the evacuation"], async ([what = ""]) => {
          if (!isFirst) {
            // The last one was over too early to be interrupted, so the server is evacuated back.
            [here, destination] = [destination, here];
            await cell.agentOf(here).kill();
            await forceDown(here, true);
          }
          isFirst = false;
          return [(await isEvacuated(here, destination)) ? [] : [what]];
        });
        await server.act("os-stop");
        await server.settled("SHUTOFF");
        inDisk(server, destination, "read -P 0x5a 40M 64k");
      },
      TEST_MS,
    );
  },
);
