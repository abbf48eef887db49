import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { FunctionNotes } from "../../../adapters/qemu/function-notes.ts";
import { bootId } from "../../../runtime/boot-id.ts";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { makeSysroot, sriovCard } from "../../../test/rigs/made-up-sysroot.ts";
import { functionsOfGuests } from "./guest-functions.ts";

/** Functions of which one is left over, of a guest that is gone. */
function leftOver(found: () => Promise<never[]>) {
  const dir = mkdtempSync(join(tmpdir(), "berth-guest-functions-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const functionNotes = join(dir, "functions.json");
  const note = { dir: join(dir, "gone"), portId: "p", mac: "fa:16:3e:00:00:01" };
  new FunctionNotes({ path: functionNotes, boot: bootId() }).put("0000:3b:02.0", note);
  const clock = new ManualClock();
  const ran: string[] = [];
  const runProgram = async (_: string, args: readonly string[]) => void ran.push(args.join(" "));
  const sysroot = makeSysroot(sriovCard());
  const functions = functionsOfGuests({ sysroot, dirs: { found }, runProgram, functionNotes, clock });
  onTestFinished(() => functions.close());
  return { functions, clock, ran };
}

test("an agent that is closed while it looks for its guests clears nothing afterwards", async () => {
  const look = Promise.withResolvers<never[]>();
  const { functions, clock, ran } = leftOver(() => look.promise);
  const started = functions.start();
  functions.close();
  look.resolve([]);
  await started;
  expect([clock.pending, ran]).toEqual([0, []]);
});

test("no function is cleared while the guests are unknown, and it is cleared when they are known again", async () => {
  let looks = 0;
  let isReadable = false;
  const { functions, clock, ran } = leftOver(async () => {
    looks += 1;
    if (!isReadable) throw new Error("the storage does not answer");
    return [];
  });
  await functions.start();
  const afterMinutes = (what: string, isSo: () => boolean) =>
    eventually(what, () => {
      clock.advance(60_000);
      return isSo();
    });
  await afterMinutes("further looks", () => looks >= 3);
  expect(ran).toEqual([]);
  isReadable = true;
  await afterMinutes("the clearing", () => ran.length === 2);
  expect(ran).toEqual(["link set dev ens1f0 vf 0 mac 00:00:00:00:00:00 vlan 0", "link set dev ens1f0 vf 0 trust off"]);
});
