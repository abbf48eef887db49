import { pino } from "pino";
import { afterEach, describe, expect, test } from "vitest";
import { systemClock } from "../../../runtime/clock.ts";
import { readSettings } from "../../../runtime/settings.ts";
import { makeQemuGuestsDir, type QemuGuestsDir, whyNoQemu } from "../../../test/rigs/qemu-guests.ts";
import { treeOf } from "../host-config.ts";
import { type OpenedDriver, openDriver } from "../open-driver.ts";
import { agentDeclaration } from "../settings.ts";

const skipped = whyNoQemu();
const silent = pino({ level: "silent" });

describe.skipIf(skipped !== null)(
  `the traits of a host with virtual machines${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let dir: QemuGuestsDir;
    let opened: OpenedDriver;
    afterEach(async () => {
      opened.close();
      await dir.remove();
    });

    function traitsWith(...more: readonly string[]): readonly string[] {
      dir = makeQemuGuestsDir();
      const paths = ["--instances-path", dir.instancesPath, "--images-path", dir.images];
      const argv = ["--agent-id", "a", "--conductors", "c:1", "--hosts", "1", "--driver", "qemu", ...paths, ...more];
      const surroundings = { clock: systemClock, logger: silent, crash: () => {}, loseConnections: () => {} };
      const read = readSettings(agentDeclaration, { argv, env: {} });
      if (read.kind === "help") throw new Error("no help was asked for");
      opened = openDriver(read.settings, surroundings);
      const [host] = opened.source.look().hosts;
      return treeOf(host!, opened.driver.traits).providers[0]?.traits ?? [];
    }

    test("say what its guests' CPUs can do and what hardware the guests have, so that flavors and images find it", () => {
      const traits = traitsWith("--accel", "tcg", "--cpu-model", "Westmere");
      const ofCpus = ["HW_CPU_X86_AESNI", "HW_CPU_X86_SSE42", "HW_ARCH_X86_64", "COMPUTE_ARCH_X86_64"];
      const ofDevices = ["COMPUTE_STORAGE_BUS_VIRTIO", "COMPUTE_NET_VIF_MODEL_VIRTIO", "COMPUTE_NET_ATTACH_INTERFACE"];
      expect(traits).toEqual(expect.arrayContaining([...ofCpus, ...ofDevices]));
      expect(traits).not.toContain("HW_CPU_X86_AVX2");
      expect(traits.filter((trait) => trait.includes("GRAPHICS"))).toEqual([]);
    });

    test("name the model of the guests' displays, and no flags of a CPU model that QEMU does not have", () => {
      const traits = traitsWith(
        "--accel",
        "tcg",
        "--cpu-model",
        "no-such-model",
        "--vnc-enabled",
        "--video-model",
        "vga",
      );
      expect(traits).toContain("COMPUTE_GRAPHICS_MODEL_VGA");
      expect(traits.filter((trait) => trait.startsWith("HW_CPU_X86"))).toEqual([]);
    });
  },
);
