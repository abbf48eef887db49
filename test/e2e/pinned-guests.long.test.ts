import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { writeGuestRecord } from "../../adapters/qemu/guest-record.ts";
import { NANO_IMAGE_ID as image } from "../../adapters/qemu/nano-image.ts";
import { findRunningQemu } from "../../adapters/qemu/running-qemu.ts";
import { eventually } from "../rigs/eventually.ts";
import { guestRecord } from "../rigs/guest-record.ts";
import { guestsOnDisk, type QemuGuestsDir, whyNoQemu, whyNotTwoCpus } from "../rigs/qemu-guests.ts";
import type { E2eCell } from "./cell.ts";
import type { Cloud } from "./cloud.ts";
import { useGuestCloud } from "./guest-cloud.ts";

const [FIRST, SECOND] = ["cell-1-agent-1-host-1", "cell-1-agent-2-host-1"];
/** The dedicated CPU of each host. Both hosts are this machine, of which each shares the other CPU. */
const DEDICATED: Readonly<Record<string, string>> = { [FIRST]: "1", [SECOND]: "0" };
const PATIENT = { everyMs: 30, withinMs: 60_000 };
const skipped = whyNoQemu() ?? whyNotTwoCpus();

describe.skipIf(skipped !== null)(
  `virtual machines with dedicated CPUs${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let cloud: Cloud;
    let cell: E2eCell;
    let dir: QemuGuestsDir;
    let flavor: string;

    const agentEnv = (id: string) => {
      const host = `${id}-host-1`;
      const dedicated = DEDICATED[host] ?? "";
      return {
        ...{ BERTH_DISCOVER: "true", BERTH_HOST: host },
        ...{ BERTH_CPU_DEDICATED_SET: dedicated, BERTH_CPU_SHARED_SET: dedicated === "1" ? "0" : "1" },
      };
    };
    const env = () => ({ BERTH_RESIZE_TO_SAME_HOST: "true" });
    useGuestCloud({ agents: 2, isShared: true, env, agentEnv }, async (made) => {
      ({ cloud, cell, dir } = made);
      flavor = await cloud.compute.flavor({ "hw:cpu_policy": "dedicated" });
    });

    const booted = async (of = flavor) => {
      const id = await cloud.compute.boot({ flavor: of, image });
      return { id, shown: await cloud.compute.endedOne(id) };
    };
    const hostOf = async (id: string) => (await cloud.compute.show(id))?.["OS-EXT-SRV-ATTR:host"] ?? "";
    /** The CPUs that the kernel gives to the vCPU of the server's guest on the host. */
    const cpusOf = (id: string, host: string) =>
      eventually(
        `the guest of ${id} on ${host}`,
        () => {
          const pids = guestsOnDisk(dir.instancesPath, id)
            .filter((guest) => guest.host === host)
            .flatMap((guest) => findRunningQemu(guest.dir)?.pid ?? []);
          return pids.flatMap((pid) => vcpusOf(pid))[0];
        },
        PATIENT,
      );
    const ghost = (index: number) => join(dir.instancesPath, `guest-ghost+${index}`);
    const deleted = async (...ids: readonly string[]) => {
      for (const id of ids) await cloud.compute.delete(id);
      await cloud.compute.gone(ids);
    };

    test("a server has the dedicated CPU of its host, at each power-on, after its agent's end, and at the other host after it has moved", async () => {
      const { id } = await booted();
      const here = await hostOf(id);
      const there = here === FIRST ? SECOND : FIRST;
      expect(await cpusOf(id, here)).toBe(DEDICATED[here]);
      const shown = await cloud.compute.call("GET", `/servers/${id}/topology`);
      const own = { host_node: 0, cpu_pinning: { 0: Number(DEDICATED[here]) } };
      expect(await shown.json()).toMatchObject({ nodes: [{ vcpu_set: [0], ...own }] });
      await cloud.compute.changed(id, "os-stop", "SHUTOFF");
      for (const agent of cell.agents) await agent.kill();
      for (const agent of cell.agents) await agent.start();
      await cloud.compute.changed(id, "os-start", "ACTIVE");
      expect(await cpusOf(id, here)).toBe(DEDICATED[here]);
      const live = { host: null, block_migration: "auto" };
      expect(await cloud.compute.changed(id, "os-migrateLive", "ACTIVE", live)).toBe(there);
      expect(await cpusOf(id, there)).toBe(DEDICATED[there]);
      expect(await cloud.compute.changed(id, "migrate", "VERIFY_RESIZE")).toBe(here);
      expect(await cpusOf(id, here)).toBe(DEDICATED[here]);
      await cloud.compute.changed(id, "revertResize", "ACTIVE");
      expect(await cpusOf(id, there)).toBe(DEDICATED[there]);
      await cloud.expectCleanAudit();
      await deleted(id);
    });

    test("a server is resized on a host whose only dedicated CPU it has itself, and rebuilt there", async () => {
      const servers = [await booted(), await booted()];
      const [{ id }, other] = [servers[0]!, servers[1]!];
      const host = await hostOf(id);
      expect(new Set([host, await hostOf(other.id)])).toEqual(new Set([FIRST, SECOND]));
      const larger = await cloud.compute.flavor({ "hw:cpu_policy": "dedicated", "hw:cpu_thread_policy": "prefer" });
      expect(await cloud.compute.changed(id, "resize", "VERIFY_RESIZE", { flavorRef: larger })).toBe(host);
      expect(await cpusOf(id, host)).toBe(DEDICATED[host]);
      await cloud.compute.changed(id, "confirmResize", "ACTIVE");
      await cloud.compute.changed(id, "rebuild", "ACTIVE", { imageRef: image });
      expect(await cpusOf(id, host)).toBe(DEDICATED[host]);
      await cloud.expectCleanAudit();
      await deleted(id, other.id);
    });

    test("a server whose CPU its host cannot give is tried on an alternate, and fails with the reason of each host", async () => {
      // Guests that the cell does not know, as after a restore of its database.
      for (const [index, host] of [FIRST, SECOND].entries()) {
        const held = [Number(DEDICATED[host])];
        const pinning = {
          vcpus: [held],
          held,
          emulator: held,
          memory: [{ memoryMib: 16, hostNode: 0 }],
          isBound: false,
          pageKib: null,
        };
        mkdirSync(ghost(index));
        await writeGuestRecord(
          ghost(index),
          guestRecord({ host, serverUuid: "ghost", attemptId: `ghost/${index}`, pinning }),
        );
      }
      const { id, shown } = await booted();
      expect(shown.status).toBe("ERROR");
      const attempts = await cloud.compute.attempts(id);
      expect(new Set(attempts.map(({ host }) => host))).toEqual(new Set([FIRST, SECOND]));
      for (const { host, result, details } of attempts) {
        expect(result).toBe("Error");
        const all = DEDICATED[host ?? ""];
        expect(details).toContain(`needs 1 dedicated CPUs of NUMA node 0, which has ${all}, of which none is free`);
      }
      await deleted(id);
      for (const index of [0, 1]) rmSync(ghost(index), { recursive: true });
      const again = await booted();
      expect(again.shown.status).toBe("ACTIVE");
      await deleted(again.id);
      await cloud.expectCleanAudit();
    });
  },
);

/** The CPUs of each thread of a QEMU process that runs a vCPU. Their names begin so with `debug-threads=on`. */
function vcpusOf(pid: number): readonly string[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) => {
    const status = readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8");
    if (!/^Name:\s*CPU \d/m.test(status)) return [];
    return /^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1] ?? [];
  });
}
