import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { readGuestRecord } from "../../adapters/qemu/guest-record.ts";
import { NANO_IMAGE_ID } from "../../adapters/qemu/nano-image.ts";
import { findRunningQemu } from "../../adapters/qemu/running-qemu.ts";
import { eventually } from "../rigs/eventually.ts";
import { instanceDirs, type QemuGuestsDir, qemusBelow, whyNoQemu } from "../rigs/qemu-guests.ts";
import { WatchedServer } from "../rigs/watched-server.ts";
import type { E2eCell } from "./cell.ts";
import type { Cloud } from "./cloud.ts";
import { useGuestCloud } from "./guest-cloud.ts";
import { isIdle, isInterrupted, isSeen, untilNoneIsMissed } from "./interrupt.ts";

const PATIENT = { everyMs: 50, withinMs: 180_000, isLasting: true };
const TEST_MS = 600_000;
/** How often an action may be given up because of the deaths that other servers cause. */
const TRIES = 6;
/** `all` tests each case at each moment. */
const ARE_ALL = process.env.BERTH_TEST_MOMENTS === "all";
const GIB = 1_024 ** 3;
const skipped = whyNoQemu();

/** The flavors before and after the resize. */
const SIZES = { old: { ram: 64, disk: 1 }, new: { ram: 96, disk: 2 } } as const;
type Size = keyof typeof SIZES;

/** What is killed in the middle of a resize, and again in the middle of its confirmation or its revert. */
type Victim = "conductor" | "source's agent" | "destination's agent";
interface Moment {
  readonly what: string;
  readonly isReached: (server: WatchedServer) => boolean;
  /** The agent that is at work at this moment. */
  readonly agent: Exclude<Victim, "conductor">;
}

/** The guests of a server before the resize, and of the resize. */
const attempts = (server: WatchedServer) => {
  const records = [...server.records].sort((one, other) => one.machine.memoryMib - other.machine.memoryMib);
  const byMemory = (size: Size) => records.find(({ machine }) => machine.memoryMib === SIZES[size].ram);
  return { before: byMemory("old"), after: byMemory("new") };
};
const MOMENTS: readonly Moment[] = [
  { what: "it is accepted", isReached: () => true, agent: "source's agent" },
  { what: "the new guest is recorded", isReached: (one) => one.records.length === 2, agent: "destination's agent" },
  {
    what: "the new guest waits for the disk",
    isReached: (one) => (attempts(one).after?.listensAt ?? "") !== "",
    agent: "destination's agent",
  },
  {
    what: "the old guest is shut down",
    isReached: (one) => one.guests.some(({ console }) => (console.match(/^P$/gm)?.length ?? 0) > 1),
    agent: "source's agent",
  },
  {
    what: "the disk is copied",
    isReached: (one) => attempts(one).before?.handedTo?.isDone === true,
    agent: "source's agent",
  },
  {
    what: "the new guest runs",
    isReached: (one) => attempts(one).after?.hasRun === true,
    agent: "destination's agent",
  },
];

interface Ending extends Moment {
  readonly action: "confirmResize" | "revertResize";
}
const ENDINGS: readonly Ending[] = [
  { action: "confirmResize", what: "it is accepted", isReached: () => true, agent: "source's agent" },
  { action: "revertResize", what: "it is accepted", isReached: () => true, agent: "destination's agent" },
  {
    ...{ action: "confirmResize", what: "the old guest is gone", agent: "source's agent" },
    isReached: (one) => attempts(one).before === undefined,
  },
  {
    ...{ action: "revertResize", what: "the new guest is gone", agent: "destination's agent" },
    isReached: (one) => attempts(one).after === undefined,
  },
  {
    ...{ action: "revertResize", what: "the old guest is started", agent: "source's agent" },
    isReached: (one) => attempts(one).after === undefined && attempts(one).before?.runningIn != null,
  },
];

describe.skipIf(skipped !== null)(
  `resizes of virtual machines${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let cloud: Cloud;
    let cell: E2eCell;
    let dir: QemuGuestsDir;
    const flavors = { old: "", new: "" };

    const env = () => ({ BERTH_RESIZE_TO_SAME_HOST: "true" });
    useGuestCloud({ agents: 2, isShared: false, env }, async (made) => {
      ({ cloud, cell, dir } = made);
      for (const size of ["old", "new"] as const) {
        const id = `${size}-${randomUUID()}`;
        const flavor = { id, name: id, vcpus: 1, ...SIZES[size] };
        expect((await cloud.compute.call("POST", "/flavors", { flavor })).status).toBe(200);
        flavors[size] = id;
      }
    });

    /** A server with a mark on its disk, whose guest was shut down once. */
    const booted = async (host: string) => {
      const id = await cloud.compute.boot({ flavor: flavors.old, image: NANO_IMAGE_ID, zone: `nova:${host}` });
      const server = new WatchedServer(cloud.compute, dir, id);
      await server.ticksOn(await server.settled("ACTIVE"));
      await server.act("os-stop");
      await server.settled("SHUTOFF");
      inDisk(server, "write -P 0x5a 40M 64k");
      await server.act("os-start");
      await server.ticksOn(await server.settled("ACTIVE"));
      return server;
    };
    const inDisk = (server: WatchedServer, command: string) => {
      const disk = join(server.guests[0]?.dir ?? "", "disk0.qcow2");
      return execFileSync("qemu-io", ["-f", "qcow2", "-c", command, disk], { stdio: "pipe" });
    };

    type Hosts = Readonly<Record<"source" | "destination", string>>;
    /** Kills a process at the moment, and starts its successor. Resolves with whether the moment was seen, and an action of the server interrupted. */
    const isHit = async (server: WatchedServer, moment: Moment, victim: Victim, hosts: Hosts) => {
      if (
        !(await isSeen(
          moment.what,
          () => moment.isReached(server),
          () => isIdle(server),
        ))
      )
        return false;
      const [conductor] = cell.conductors;
      const agent = cell.agentOf(victim === "source's agent" ? hosts.source : hosts.destination);
      return isInterrupted(cell, server, victim === "conductor" && conductor !== undefined ? conductor : agent);
    };

    /** Exactly one guest of the server exists, has the size and the data that it should have, and nothing is left of the other one. */
    const expectOne = async (server: WatchedServer, size: Size, host: string, what: string) => {
      expect([what, await server.settled("ACTIVE")]).toEqual([what, host]);
      await eventually(`one guest (${what})`, () => server.guests.length === 1, PATIENT);
      await server.ticksOn(host);
      const [guest] = server.guests;
      const [record] = server.records;
      expect([what, guest?.host, record?.machine.memoryMib]).toEqual([what, host, SIZES[size].ram]);
      const facts = execFileSync("qemu-img", ["info", "-U", "--output=json", join(guest?.dir ?? "", "disk0.qcow2")]);
      expect([what, JSON.parse(facts.toString())["virtual-size"]]).toEqual([what, SIZES[size].disk * GIB]);
      const shown = await cloud.compute.show(server.id);
      expect([what, shown?.flavor]).toEqual([
        what,
        expect.objectContaining({ original_name: flavors[size], ram: SIZES[size].ram }),
      ]);
      expect([what, await cell.holders(server.id)]).toEqual([what, [host]]);
      await server.act("os-stop");
      await server.settled("SHUTOFF");
      inDisk(server, "read -P 0x5a 40M 64k");
    };

    /** The old and the new guest exist, and only the new one runs. */
    const expectNewOneRuns = async (server: WatchedServer, what: string) => {
      const ticks = (size: Size) => {
        const attemptId = attempts(server)[size === "old" ? "before" : "after"]?.attemptId;
        return server.guests.find((guest) => guest.attemptId === attemptId)?.ticks.length ?? -1;
      };
      const [old, fresh] = [ticks("old"), ticks("new")];
      await eventually(`further ticks (${what})`, () => ticks("new") > Math.max(fresh, 0) + 1, PATIENT);
      expect([what, ticks("old")]).toEqual([what, old]);
    };

    /** Resolves with the server's status when nothing is under way, which is so while none of its processes is dead. */
    const rests = async (server: WatchedServer) =>
      eventually(
        "the end of an action",
        async () => {
          const { task, status } = await server.shown();
          return task === null && status;
        },
        PATIENT,
      );

    const resized = async (server: WatchedServer, moment: Moment, isAgent: boolean, isSameHost: boolean) => {
      const { host: source } = await server.shown();
      const other = cell.agents.flatMap(({ hosts }) => hosts).find((one) => one !== source) ?? "";
      const hosts = { source, destination: isSameHost ? source : other };
      let isMomentHit = false;
      for (let tries = 0; tries < TRIES; tries += 1) {
        await server.act("resize", { flavorRef: flavors.new });
        if (tries === 0) isMomentHit = await isHit(server, moment, isAgent ? moment.agent : "conductor", hosts);
        const status = await rests(server);
        if (status === "VERIFY_RESIZE") return { hosts, isMomentHit };
        // It was given up because an agent died, and says so: the server is what it was. Then it can be resized.
        const reason = await server.reasonOf("resize");
        expect([moment.what, reason, status, isAgent]).toEqual([moment.what, expect.anything(), "ACTIVE", true]);
        await eventually("the old guest alone", () => server.guests.length === 1, PATIENT);
        await server.ticksOn(source);
      }
      throw new Error(`the resize was given up ${TRIES} times (${moment.what})`);
    };

    const resizedAndEnded = async (server: WatchedServer, index: number, isAgent: boolean, isSameHost: boolean) => {
      const moment = MOMENTS[index % MOMENTS.length] as Moment;
      const ending = ENDINGS[index % ENDINGS.length] as Ending;
      const what = `resize until ${moment.what}, ${ending.action} until ${ending.what}`;
      const { hosts, isMomentHit } = await resized(server, moment, isAgent, isSameHost);
      const missed = isMomentHit ? [] : [`a resize until ${moment.what}`];
      expect([what, await server.settled("VERIFY_RESIZE")]).toEqual([what, hosts.destination]);
      await expectNewOneRuns(server, what);
      let status: string | null = "VERIFY_RESIZE";
      for (let tries = 0; tries < TRIES && status === "VERIFY_RESIZE"; tries += 1) {
        // A host that is silent when it is asked for its guest leaves the server as it is. Then the user asks again.
        expect([what, tries === 0 || isAgent]).toEqual([what, true]);
        await server.act(ending.action);
        if (tries === 0 && !(await isHit(server, ending, isAgent ? ending.agent : "conductor", hosts)))
          missed.push(`${ending.action} until ${ending.what}`);
        status = await rests(server);
      }
      const isNew = ending.action === "confirmResize";
      await expectOne(server, isNew ? "new" : "old", isNew ? hosts.destination : hosts.source, what);
      return missed;
    };

    const setHost = async (host: string, status: "enabled" | "disabled") => {
      const listed = await cloud.compute.call("GET", `/os-services?host=${host}&binary=nova-compute`);
      const { services } = (await listed.json()) as { readonly services: readonly { readonly id: string }[] };
      expect((await cloud.compute.call("PUT", `/os-services/${services[0]?.id}`, { status })).status).toBe(200);
    };

    const expectNothingLeft = async (servers: readonly WatchedServer[]) => {
      await cloud.expectCleanAudit();
      const own = servers.flatMap((server) => server.guests.map((guest) => guest.dir)).sort();
      expect([...instanceDirs(dir.instancesPath)].sort()).toEqual(own);
      const running = own.filter((one) => findRunningQemu(one) !== null && readGuestRecord(one) !== null);
      expect(qemusBelow(dir.path)).toEqual(running);
      await Promise.all(servers.map(({ id }) => cloud.compute.delete(id)));
      await cloud.compute.gone(servers.map(({ id }) => id));
      expect([instanceDirs(dir.instancesPath), qemusBelow(dir.path)]).toEqual([[], []]);
    };

    const conductorOnSame = ["the same", "conductor is", [1, 3, 5]] as const;
    const agentsOnAnother = ["another", "agents are", [2, 3, 4]] as const;
    const further = [
      ["another", "conductor is", []],
      ["the same", "agents are", []],
    ] as const;
    test.each([conductorOnSame, agentsOnAnother, ...(ARE_ALL ? further : [])])(
      "end on %s host as they should when the %s killed in the middle, and again when they are confirmed or reverted",
      async (place, killed, usual) => {
        const [first = "", second = ""] = cell.agents.flatMap(({ hosts }) => hosts);
        const isSameHost = place === "the same";
        const moments = ARE_ALL ? MOMENTS.keys().toArray() : usual;
        const closed = isSameHost ? second : first;
        // On the same host, each moment is followed by another ending.
        const from = isSameHost ? MOMENTS.length : 0;
        await untilNoneIsMissed(moments, async (these) => {
          const servers = await Promise.all(these.map(() => booted(first)));
          await setHost(closed, "disabled");
          const run = (server: WatchedServer, at: number) =>
            resizedAndEnded(server, from + (these[at] ?? 0), killed === "agents are", isSameHost);
          const missed = await Promise.all(servers.map(run)).finally(() => setHost(closed, "enabled"));
          await expectNothingLeft(servers);
          return missed;
        });
      },
      TEST_MS,
    );
  },
);
