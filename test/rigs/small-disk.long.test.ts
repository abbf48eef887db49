import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { openHangingDisk, openSmallDisk, whyNoHangingDisk, whyNoSmallDisk } from "./small-disk.ts";

const MODULE = join(import.meta.dirname, "small-disk.ts");
const mounts = () => readFileSync("/proc/self/mounts", "utf8");

/** A process that makes a disk and is killed. Resolves with the disk's path. */
async function killedWith(making: string): Promise<string> {
  const script = `import * as disks from ${JSON.stringify(MODULE)}; ${making}; console.log(disk.path); setInterval(() => {}, 1e9)`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [line] = (await once(child.stdout, "data")) as [Buffer];
  child.kill("SIGKILL");
  await once(child, "exit");
  return line.toString().trim();
}

const KINDS = [
  {
    ...{ what: "a disk that hangs", why: whyNoHangingDisk(), open: openHangingDisk },
    making: "const disk = disks.openHangingDisk(); disk.freeze()",
  },
  {
    ...{ what: "a small disk", why: whyNoSmallDisk(), open: () => openSmallDisk(1) },
    making: "const disk = disks.openSmallDisk(1); disk.fill()",
  },
];

describe.each(KINDS)("$what", ({ why, open, making }) => {
  test.skipIf(why !== null)(
    "of a test that was killed is ended when the next one is made, and those in use stay",
    async () => {
      const own = open();
      onTestFinished(() => own.close());
      const left = await killedWith(making);
      expect([mounts().includes(` ${left} `), mounts().includes(` ${own.path} `)]).toEqual([true, true]);
      open().close();
      expect([mounts().includes(` ${left} `), existsSync(dirname(left))]).toEqual([false, false]);
      expect(mounts()).toContain(` ${own.path} `);
    },
  );
});
