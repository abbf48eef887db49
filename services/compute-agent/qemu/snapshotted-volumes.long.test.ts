import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { nanoImage } from "../../../adapters/qemu/nano-image.ts";
import type { SnapshotStep } from "../../../core/agent/power-verbs.ts";
import type { ServerVolume } from "../../../proto/gen/berth/shared.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { volumeOf } from "../../../test/rigs/begin-operation.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import {
  guestsOnDisk,
  hasOpen,
  makeQemuGuestsDir,
  NANO_FLAVOR,
  type QemuGuestsDir,
  qemuDriverIn,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import type { GuestName } from "../journal.ts";
import type { QemuDriver } from "./qemu-driver.ts";

const NEVER = new AbortController().signal;
const EXPORT = "storage:/volumes";
const skipped = whyNoQemu();
const idOf = (number: number) => `0000c0de-0000-4000-8000-${String(number).padStart(12, "0")}`;

describe.skipIf(skipped !== null)(
  `snapshots of volumes of virtual machines${skipped === null ? "" : ` (skipped: ${skipped})`}`,
  () => {
    let dir: QemuGuestsDir;
    let driver: QemuDriver;
    let mount: string;
    beforeEach(() => {
      dir = makeQemuGuestsDir();
      mount = join(dir.volumes, createHash("md5").update(EXPORT).digest("hex"));
      mkdirSync(mount);
      driver = qemuDriverIn(dir, { volumeMounts: dir.volumes });
    });
    afterEach(async () => {
      driver.close();
      await dir.remove();
    });

    const pathOf = (name: string) => join(mount, name);
    const wayTo = (name: string, format = "raw") =>
      JSON.stringify({ driver_volume_type: "nfs", export: EXPORT, name, format });
    const onDisk = (guest: GuestName) =>
      guestsOnDisk(dir.path, guest.serverUuid).find(({ host }) => host === guest.host)!;
    const opens = (guest: GuestName, ...names: readonly string[]) =>
      names.filter((name) => hasOpen(onDisk(guest).dir, pathOf(name)));
    const ROOT: ServerVolume = { ...volumeOf(1), isRoot: true, inCinder: true, connection: "" };
    const DATA: ServerVolume = { ...volumeOf(2), inCinder: true, connection: "" };
    const base = `volume-${DATA.volumeId}`;
    const snapshotFile = (number: number) => `${base}.${idOf(number)}`;

    /** A guest that runs from a volume, with another one. */
    async function running(format: "raw" | "qcow2" = "raw"): Promise<GuestName> {
      writeFileSync(pathOf(`volume-${ROOT.volumeId}`), nanoImage());
      if (format === "raw") {
        writeFileSync(pathOf(base), "");
        truncateSync(pathOf(base), 1 << 20);
      } else execFileSync("qemu-img", ["create", "-q", "-f", format, pathOf(base), "1M"]);
      execFileSync("qemu-io", ["-f", format, "-c", "write -q -P 0x5a 64k 64k", pathOf(base)]);
      const volumes = [
        { ...ROOT, connection: wayTo(`volume-${ROOT.volumeId}`) },
        { ...DATA, connection: wayTo(base, format) },
      ];
      const server = serverSpec(1, { flavor: NANO_FLAVOR, imageRef: "", volumes });
      const guest = { host: "h1", serverUuid: server.uuid, attemptId: "task/h1" };
      const order = { ...guest, server, allocation: undefined, movedFrom: null };
      expect(await driver.prepare(order, { signal: NEVER, onStep: () => undefined })).toMatchObject({
        kind: "prepared",
      });
      await driver.start(guest, NEVER);
      expect(opens(guest, base)).toEqual([base]);
      return guest;
    }
    /** Cinder makes the file of a snapshot, as its drivers do. */
    function make(number: number, backing: string, format: string): string {
      const file = snapshotFile(number);
      execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", "-b", backing, "-F", format, pathOf(file), "1M"], {
        cwd: mount,
      });
      return file;
    }
    const ask = (
      guest: GuestName,
      step: SnapshotStep,
      named: string,
      order: { readonly newFile?: string; readonly fileToMerge?: string; readonly mergeTarget?: string },
    ) =>
      driver.snapshotVolume(
        guest,
        { ...DATA, connection: named === "" ? "" : wayTo(named, named === base ? "raw" : "qcow2") },
        { step, snapshot: { snapshotId: idOf(9), newFile: "", fileToMerge: "", mergeTarget: "", ...order } },
        NEVER,
      );
    const restart = () => {
      driver.close();
      driver = qemuDriverIn(dir, { volumeMounts: dir.volumes });
    };
    const backingOf = (name: string): unknown =>
      JSON.parse(execFileSync("qemu-img", ["info", "-U", "--output=json", pathOf(name)], { encoding: "utf8" }))[
        "backing-filename"
      ];
    const content = (name: string) =>
      execFileSync(
        "qemu-io",
        ["-r", "-f", name === base ? "raw" : "qcow2", "-c", "read -P 0x5a 64k 64k", pathOf(name)],
        {
          encoding: "utf8",
          cwd: mount,
        },
      );
    async function reboot(guest: GuestName): Promise<void> {
      const before = onDisk(guest).console.length;
      await driver.power(guest, "hard-reboot", NEVER);
      await eventually("the guest to boot", () => /T/.test(onDisk(guest).console.slice(before)), {
        everyMs: 20,
        withinMs: 60_000,
      });
    }

    test("a guest writes to the files of three snapshots, which are merged in any order while it runs, and boots from what is left", async () => {
      const guest = await running();
      const names = [base];
      for (const number of [1, 2, 3]) {
        const [top = ""] = names;
        const file = make(number, top, top === base ? "raw" : "qcow2");
        for (let time = 0; time < 2; time += 1) await ask(guest, "switch", top, { newFile: file });
        names.unshift(file);
        if (number === 2) await reboot(guest);
      }
      const [three = "", two = "", one = ""] = names;
      expect(opens(guest, ...names)).toEqual(names);
      await expect(ask(guest, "merge", two, { fileToMerge: two, mergeTarget: one })).rejects.toThrow("Cinder names");
      await expect(ask(guest, "merge", three, { fileToMerge: three, mergeTarget: two })).rejects.toThrow(
        "therefore stays",
      );
      await expect(ask(guest, "merge", three, { fileToMerge: two, mergeTarget: base })).rejects.toThrow(
        "does not refer",
      );
      for (let time = 0; time < 2; time += 1) await ask(guest, "merge", three, { fileToMerge: two, mergeTarget: one });
      rmSync(pathOf(two));
      expect([backingOf(three), opens(guest, three, one, base)]).toEqual([one, [three, one, base]]);
      // An agent that begins anew finds what its QEMU has open.
      restart();
      for (let time = 0; time < 2; time += 1) await ask(guest, "merge", three, { fileToMerge: base });
      rmSync(pathOf(one));
      expect([backingOf(three), opens(guest, three, base)]).toEqual([base, [three, base]]);
      for (let time = 0; time < 2; time += 1) await ask(guest, "merge", three, {});
      rmSync(pathOf(base));
      expect([backingOf(three), opens(guest, three)]).toEqual([undefined, [three]]);
      await reboot(guest);
      expect(opens(guest, three)).toEqual([three]);
      await driver.detachVolume(guest, DATA.volumeId, NEVER);
      expect(opens(guest, three)).toEqual([]);
      expect(content(three)).toContain("read 65536/65536");
      expect(existsSync(pathOf(three))).toBe(true);
    });

    test.each(["raw", "qcow2"] as const)(
      "a guest of a %s volume goes back to its former file, and runs on",
      async (format) => {
        const guest = await running(format);
        const file = make(1, base, format);
        const wayToBase = { ...DATA, connection: wayTo(base, format) };
        const order = { snapshotId: idOf(9), newFile: file, fileToMerge: "", mergeTarget: "" };
        await driver.snapshotVolume(guest, wayToBase, { step: "switch", snapshot: order }, NEVER);
        expect(opens(guest, file)).toEqual([file]);
        for (let time = 0; time < 2; time += 1) await ask(guest, "return", "", { newFile: file });
        expect([opens(guest, file, base), await driver.powersOf([guest])]).toEqual([[base], ["running"]]);
        rmSync(pathOf(file));
        await reboot(guest);
        expect(opens(guest, base)).toEqual([base]);
        // The same without a QEMU.
        const second = make(2, base, format);
        await driver.power(guest, "stop", NEVER);
        const again = { ...order, newFile: second };
        await driver.snapshotVolume(guest, wayToBase, { step: "switch", snapshot: again }, NEVER);
        for (let time = 0; time < 2; time += 1) await ask(guest, "return", "", { newFile: second });
        rmSync(pathOf(second));
        await reboot(guest);
        expect(opens(guest, base)).toEqual([base]);
      },
    );

    test("a guest is started only with a file that refers to the one that it has", async () => {
      const guest = await running();
      execFileSync("qemu-img", ["create", "-q", "-f", "qcow2", pathOf(snapshotFile(3)), "1M"]);
      const [own, other] = [make(1, base, "raw"), make(2, snapshotFile(3), "qcow2")];
      const use = (file: string) => driver.useFiles(guest, [{ volumeId: DATA.volumeId, file }], NEVER);
      await expect(use(other)).rejects.toThrow("does not refer");
      await use(own);
      expect(opens(guest, own, base)).toEqual([base]);
      await reboot(guest);
      expect(opens(guest, own, base)).toEqual([own, base]);
    });

    test("a guest keeps its file if the new one refers to another one, or is none", async () => {
      const guest = await running();
      const first = make(1, base, "raw");
      const wrong = make(2, first, "qcow2");
      await expect(ask(guest, "switch", base, { newFile: wrong })).rejects.toThrow("does not refer");
      await expect(ask(guest, "switch", base, { newFile: snapshotFile(7) })).rejects.toThrow("no file");
      await reboot(guest);
      expect(opens(guest, first, wrong, base)).toEqual([base]);
    });
  },
);
