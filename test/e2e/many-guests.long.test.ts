import { readdirSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { describe, expect, test } from "vitest";
import { NANO_IMAGE_ID } from "../../adapters/qemu/nano-image.ts";
import { findRunningQemu } from "../../adapters/qemu/running-qemu.ts";
import { eventually } from "../rigs/eventually.ts";
import {
  type GuestOnDisk,
  instanceDirs,
  killQemu,
  type QemuGuestsDir,
  qemusBelow,
  whyNoQemu,
} from "../rigs/qemu-guests.ts";
import { WatchedServer } from "../rigs/watched-server.ts";
import type { E2eCell } from "./cell.ts";
import type { Cloud } from "./cloud.ts";
import { type GuestCloud, useGuestCloud } from "./guest-cloud.ts";

const COUNT = 24;
/** How many guests are left when the agents are killed. The first time is when the deletion of half of them has just begun. */
const KILLED_AT = [COUNT - 1, COUNT - 8];
const WATCHFUL = { everyMs: 3, withinMs: 120_000 };
const PATIENT = { everyMs: 50, withinMs: 120_000 };
const TEST_MS = 600_000;
const skipped = whyNoQemu();

describe.skipIf(skipped !== null)(`dozens of guests${skipped === null ? "" : ` (skipped: ${skipped})`}`, () => {
  let cloud: Cloud;
  let cell: E2eCell;
  let dir: QemuGuestsDir;
  let instancesOf: GuestCloud["instancesOf"];
  let flavor: string;

  useGuestCloud({ agents: 2, isShared: false }, async (made) => {
    ({ cloud, cell, dir, instancesOf } = made);
    flavor = await cloud.compute.flavor();
  });

  const dirs = () => [...instanceDirs(dir.instancesPath)].sort();
  /** The only guest of a server. */
  const guestOf = (server: WatchedServer): GuestOnDisk => {
    const [guest, ...others] = server.guests;
    if (guest === undefined || others.length > 0) throw new Error(`server ${server.id} has not one guest`);
    return guest;
  };
  const hasTicked = (server: WatchedServer, over: number) =>
    eventually(`tick ${over + 1} of ${server.id}`, () => guestOf(server).ticks.length > over, PATIENT);
  /** The uuids of all consumers, with the hosts that they hold allocations of. */
  const held = async () => {
    const rows = await cell.query<{ readonly uuid: string; readonly host: string }>(
      `select distinct a.consumer_uuid as uuid, root.name as host from allocations a
       join resource_providers p on p.id = a.provider_id join resource_providers root on root.id = p.root_id`,
    );
    return new Map(rows.map(({ uuid, host }) => [uuid, host]));
  };
  const forAgents = (what: "kill" | "start") => Promise.all(cell.agents.map((agent) => agent[what]()));

  test(
    "on two hosts: when half of them are deleted while the agents are killed twice, and one QEMU is killed, exactly the others run on, and nothing is left of the deleted ones",
    async () => {
      const ids = await cloud.compute.bootMany(COUNT, { flavor, image: NANO_IMAGE_ID });
      const ended = await cloud.compute.ended(ids);
      expect(ended.map(({ status }) => status)).toEqual(ids.map(() => "ACTIVE"));
      const servers = ids.map((id) => new WatchedServer(cloud.compute, dir, id));
      for (const server of servers) await hasTicked(server, 0);
      expect(new Set(ended.map((server) => server["OS-EXT-SRV-ATTR:host"])).size).toBe(2);

      const doomed = servers.filter((_, index) => index % 2 === 0);
      const [crashed, ...others] = servers.filter((_, index) => index % 2 === 1);
      if (crashed === undefined) throw new Error("no server is left");
      const processes = new Map(others.map((one) => [one, findRunningQemu(guestOf(one).dir)]));
      const deleted = Promise.all(doomed.map(({ id }) => cloud.compute.delete(id)));
      for (const [times, left] of KILLED_AT.entries()) {
        await eventually(`${left} guests to be left`, () => dirs().length <= left, WATCHFUL);
        await forAgents("kill");
        if (times === 0) killQemu(guestOf(crashed).dir);
        const ticked = others.map((one) => guestOf(one).ticks.length);
        for (const [index, one] of others.entries()) await hasTicked(one, ticked[index] ?? 0);
        await forAgents("start");
      }
      await deleted;
      await cloud.compute.gone(doomed.map(({ id }) => id));
      await eventually(
        "the server of the killed QEMU",
        async () => (await crashed.shown()).status === "SHUTOFF",
        PATIENT,
      );
      await cloud.makeWhole();
      await cloud.expectCleanAudit();

      // The guests are the same processes, and have not lost a tick.
      expect(new Map(others.map((one) => [one, findRunningQemu(guestOf(one).dir)]))).toEqual(processes);
      for (const one of others) {
        const { host } = guestOf(one);
        expect(await one.shown()).toEqual({ status: "ACTIVE", task: null, host });
        const { ticks } = guestOf(one);
        expect(ticks).toEqual(ticks.map((_, index) => index + 1));
      }
      expect(dirs()).toEqual([crashed, ...others].map((one) => guestOf(one).dir).sort());
      expect(qemusBelow(dir.path)).toEqual(others.map((one) => guestOf(one).dir).sort());
      // On a busy machine an agent may once not answer in time, and then has none.
      const expected = others.map((one) => guestOf(one).attemptId).sort();
      const reported = async () => {
        const running = [...(await cell.runningGuests()).values()].flat();
        return isDeepStrictEqual(running.map(({ attemptId }) => attemptId).sort(), expected);
      };
      await eventually("the agents to report exactly these guests", reported, PATIENT);
      expect(await held()).toEqual(new Map([crashed, ...others].map((one) => [one.id, guestOf(one).host])));

      // The agents have them as guests of their own: their next orders reach them.
      const before = guestOf(crashed).ticks.length;
      await crashed.act("os-start");
      await crashed.settled("ACTIVE");
      await hasTicked(crashed, before);
      const left = [crashed, ...others];
      await Promise.all(left.map(({ id }) => cloud.compute.delete(id)));
      await cloud.compute.gone(left.map(({ id }) => id));
      await cloud.expectCleanAudit();
      expect([qemusBelow(dir.path), await held()]).toEqual([[], new Map()]);
      for (const { id } of cell.agents) {
        expect([id, readdirSync(instancesOf(id)).sort()]).toEqual([id, [".berth-guests", "_base"]]);
        const base = readdirSync(join(instancesOf(id), "_base")).sort();
        expect(base).toEqual([
          expect.stringMatching(new RegExp(`^${NANO_IMAGE_ID}-[0-9a-f]{32}$`)),
          `${NANO_IMAGE_ID}.json`,
        ]);
      }
    },
    TEST_MS,
  );
});
