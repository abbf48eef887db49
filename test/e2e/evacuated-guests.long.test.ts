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

const PATIENT = { everyMs: 50, withinMs: 120_000 };
/** The middle of an order is short. */
const WATCHFUL = { everyMs: 3, withinMs: 120_000 };
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

        killQemu(server.guestAt(source)?.dir ?? "");
        const last = server.guestAt(source)?.ticks.length ?? 0;
        await server.act("evacuate", {});
        const destination = cell.agents.flatMap(({ hosts }) => hosts).find((host) => host !== source) ?? "";
        await eventually("the new guest", () => server.guestAt(destination) !== undefined, WATCHFUL);
        await cell.agentOf(destination).replace();
        const host = await eventually(
          "the server elsewhere",
          async () => {
            const shown = await server.shown();
            if (shown.task === null && shown.host === source) await server.act("evacuate", {});
            return shown.task === null && shown.status === "ACTIVE" && shown.host !== source && shown.host;
          },
          PATIENT,
        );
        expect(host).toBe(destination);
        await server.ticksOn(destination);
        expect(server.guestAt(source)?.ticks.length).toBe(last);

        await cell.agentOf(source).start();
        await forceDown(source, false);
        await cloud.makeWhole();
        await eventually("one guest", () => server.guests.length === 1, PATIENT);
        await cloud.expectCleanAudit();
        expect(await cell.holders(server.id)).toEqual([destination]);
        await server.ticksOn(destination);
        await server.act("os-stop");
        await server.settled("SHUTOFF");
        inDisk(server, destination, "read -P 0x5a 40M 64k");
      },
      TEST_MS,
    );
  },
);
