import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import { Registry } from "prom-client";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { noTracing } from "../../../adapters/telemetry/tracing.ts";
import type { TreeReport } from "../../../proto/gen/berth/agent.ts";
import { systemClock } from "../../../runtime/clock.ts";
import { readSettings } from "../../../runtime/settings.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { makeQemuGuestsDir, type QemuGuestsDir, whyNoQemu } from "../../../test/rigs/qemu-guests.ts";
import { AgentEvents } from "../events.ts";
import { type HostConfig, treeOf } from "../host-config.ts";
import { HostWatcher } from "../host-watcher.ts";
import { openDriver } from "../open-driver.ts";
import { agentDeclaration } from "../settings.ts";

const skipped = whyNoQemu();
const silent = pino({ level: "silent" });
/**
 * On a busy machine QEMU may not tell the flags of CPUs within the 20 s that it is given, and is asked again half a minute later. The accelerator may have to be tried before,
 * which may take as long.
 */
const PATIENT = { withinMs: 230_000 };
const TEST_MS = 240_000;

describe.skipIf(skipped !== null)(
  `the traits of a host with virtual machines${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  { timeout: TEST_MS },
  () => {
    let dir: QemuGuestsDir;
    beforeEach(() => {
      dir = makeQemuGuestsDir();
    });
    afterEach(() => dir.remove());
    const dataDir = (machine = "machine") => join(dir.path, machine);

    /** Starts an agent's driver, and tells the traits of its first tree and those that it has by now. */
    async function startedWith(...more: readonly string[]) {
      const paths = ["--instances-path", dir.instancesPath, "--images-path", dir.images];
      const own = ["--agent-id", "a", "--data-dir", dataDir()];
      const argv = [...own, "--conductors", "c:1", "--driver", "qemu", ...paths, ...more];
      const surroundings = { clock: systemClock, logger: silent, crash: () => {}, loseConnections: () => {} };
      const read = readSettings(agentDeclaration, { argv, env: {} });
      if (read.kind === "help") throw new Error("no help was asked for");
      const { driver, source, close } = await openDriver(read.settings, surroundings);
      const { hosts } = source.look();
      const treeWith = (host: HostConfig) => treeOf(host, driver.traits);
      let now = treeWith(hosts[0]!);
      const first = now.providers[0]?.traits ?? [];
      const events = new AgentEvents({
        ...{ logger: silent, registry: new Registry(), tracing: noTracing, guestCount: () => 0 },
        fail: (error) => expect.unreachable(String(error)),
      });
      const onChanged = (tree: TreeReport) => {
        now = tree;
      };
      const watcher = new HostWatcher({
        ...{ clock: systemClock, events, source, everyMs: 3_600_000, treeOf: treeWith, hosts, onChanged },
      });
      watcher.start();
      const stop = () => {
        watcher.stop();
        close();
      };
      onTestFinished(stop);
      const hostIp = now.hypervisor?.hostIp;
      return { first, hostIp, traits: () => now.providers[0]?.traits ?? [], stop };
    }

    test("say what its guests' CPUs can do and what hardware the guests have, so that flavors and images find it", async () => {
      const { traits } = await startedWith("--hosts", "1", "--accel", "tcg", "--cpu-model", "Westmere");
      await eventually("the traits of the CPUs", () => traits().includes("HW_CPU_X86_AESNI"), PATIENT);
      const ofCpus = ["HW_CPU_X86_SSE42", "HW_ARCH_X86_64", "COMPUTE_ARCH_X86_64"];
      const ofDevices = ["COMPUTE_STORAGE_BUS_VIRTIO", "COMPUTE_NET_VIF_MODEL_VIRTIO", "COMPUTE_NET_ATTACH_INTERFACE"];
      expect(traits()).toEqual(expect.arrayContaining([...ofCpus, ...ofDevices]));
      expect(traits()).not.toContain("HW_CPU_X86_AVX2");
      expect(traits().filter((trait) => trait.includes("GRAPHICS"))).toEqual([]);
    });

    test("are reported once the accelerator has been chosen, and in the first tree of every later agent", async () => {
      const settings = ["--hosts", "1", "--accel", "auto", "--cpu-model", "Westmere"];
      const agent = await startedWith(...settings);
      expect(agent.first).not.toContain("HW_CPU_X86_AESNI");
      await eventually("the traits of the CPUs", () => agent.traits().includes("HW_CPU_X86_AESNI"), PATIENT);
      agent.stop();
      expect((await startedWith(...settings)).first).toContain("HW_CPU_X86_AESNI");
    });

    test("are not those that the agent of another machine has learnt, which shares the directory of the guests", async () => {
      const settings = ["--hosts", "1", "--accel", "tcg", "--cpu-model", "Westmere"];
      const agent = await startedWith(...settings);
      await eventually("the traits of the CPUs", () => agent.traits().includes("HW_CPU_X86_AESNI"), PATIENT);
      agent.stop();
      const { first } = await startedWith(...settings, "--data-dir", dataDir("other-machine"));
      expect(first).not.toContain("HW_CPU_X86_AESNI");
      expect(readdirSync(dir.instancesPath)).toEqual([]);
    });

    test("are those of the hosts file where it names the flags of guests' CPUs", async () => {
      const file = join(dir.instancesPath, "hosts.json");
      writeFileSync(
        file,
        JSON.stringify({
          hosts: [
            { name: "told", inventories: { VCPU: { total: 4 } }, hypervisor: { guest_cpu_flags: ["avx2"] } },
            { name: "asked", inventories: { VCPU: { total: 4 } } },
          ],
        }),
      );
      const settings = ["--hosts-file", file, "--accel", "tcg", "--cpu-model", "Westmere"];
      const agent = await startedWith(...settings);
      await eventually(
        "the traits of the other host's CPUs",
        () => agent.traits().includes("HW_CPU_X86_AESNI"),
        PATIENT,
      );
      agent.stop();
      // The kept flags are known to the first tree.
      const { first } = await startedWith(...settings);
      expect(first.filter((trait) => trait.startsWith("HW_CPU_X86"))).toEqual(["HW_CPU_X86_AVX2"]);
    });

    test("have the address at which guests arrive, if other machines can have it, or the one of the hosts file", async () => {
      const addressOf = async (...more: readonly string[]) => (await startedWith("--accel", "tcg", ...more)).hostIp;
      const at = (address: string) => addressOf("--hosts", "1", "--live-migration-inbound-addr", address);
      for (const address of ["192.0.2.7", "2001:db8::7"]) expect(await at(address)).toBe(address);
      for (const address of ["127.0.0.1", "::1", "::", "0.0.0.0"]) expect(await at(address)).toBe("");
      expect(await addressOf("--hosts", "1")).toBe("");
      const file = join(dir.instancesPath, "hosts.json");
      const host = { name: "h", inventories: { VCPU: { total: 4 } }, hypervisor: { host_ip: "192.0.2.9" } };
      writeFileSync(file, JSON.stringify({ hosts: [host] }));
      expect(await addressOf("--hosts-file", file, "--live-migration-inbound-addr", "192.0.2.7")).toBe("192.0.2.9");
    });

    test("name the model of the guests' displays", async () => {
      const { first } = await startedWith("--hosts", "1", "--accel", "tcg", "--vnc-enabled", "--video-model", "vga");
      expect(first).toContain("COMPUTE_GRAPHICS_MODEL_VGA");
    });
  },
);
