import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { withBacking } from "./volume-chain.ts";

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "berth-chain-"));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const NAME = "volume-1";
const pathOf = (name: string) => join(dir, name);
const find = (name = NAME, format: "raw" | "qcow2" = "qcow2") =>
  withBacking({ path: pathOf(name), format }, (path) => open(path));

/** Writes the header of a qcow2 image of version 3. */
function write(name: string, { backing = "", format = "", features = 0n } = {}): void {
  const header = Buffer.alloc(512);
  header.writeUInt32BE(0x51_46_49_fb);
  header.writeUInt32BE(3, 4);
  if (backing !== "") header.writeBigUInt64BE(256n, 8);
  header.writeUInt32BE(backing.length, 16);
  header.writeBigUInt64BE(features, 72);
  header.writeUInt32BE(104, 100);
  let at = 104;
  for (const [type, text] of [[0x68_03_f8_57, "features"] as const, [0xe2_79_2a_ca, format] as const]) {
    if (text === "") continue;
    header.writeUInt32BE(type, at);
    header.writeUInt32BE(text.length, at + 4);
    header.write(text, at + 8);
    at += 8 + Math.ceil(text.length / 8) * 8;
  }
  header.write(backing, 256);
  writeFileSync(pathOf(name), header);
}

test("a file without others stays alone, and a raw one is not looked into", async () => {
  write(NAME);
  expect(await find()).toEqual({ path: pathOf(NAME), format: "qcow2" });
  write(NAME, { backing: "/etc/shadow", format: "raw" });
  expect(await find(NAME, "raw")).toEqual({ path: pathOf(NAME), format: "raw" });
});

test("the files of a volume's snapshots are followed to the first one", async () => {
  writeFileSync(pathOf(NAME), "data");
  write(`${NAME}.a`, { backing: NAME, format: "raw" });
  write(`${NAME}.b`, { backing: `${NAME}.a`, format: "qcow2" });
  const first = { path: pathOf(NAME), format: "raw" };
  const second = { path: pathOf(`${NAME}.a`), format: "qcow2", backing: first };
  expect(await find(`${NAME}.b`)).toEqual({ path: pathOf(`${NAME}.b`), format: "qcow2", backing: second });
});

test.each([
  [
    { backing: "/etc/shadow", format: "raw" },
    'refers to the file "/etc/shadow", which is not one of the volume\'s own',
  ],
  [{ backing: "volume-2", format: "raw" }, "not one of the volume's own"],
  [{ backing: "volume-12", format: "raw" }, "not one of the volume's own"],
  [{ backing: "volume-1./../volume-2", format: "raw" }, "not one of the volume's own"],
  [{ backing: 'json:{"driver":"nbd"}', format: "raw" }, "not one of the volume's own"],
  [{ backing: "volume-1.a" }, 'names the format "" for the file it refers to; allowed: raw, qcow2'],
  [{ backing: "volume-1", format: "qcow2" }, "refers to more than 100 files"],
  [{ features: 4n }, "keeps its data in another file"],
])("a file whose header says %o is refused", async (header, why) => {
  write(NAME, header);
  await expect(find()).rejects.toThrow(why);
});

test("a file that is no qcow2 image, or only a part of one, is refused", async () => {
  writeFileSync(pathOf(NAME), "");
  await expect(find()).rejects.toThrow("its content is not in the format qcow2");
  const whole = Buffer.alloc(512);
  whole.writeUInt32BE(0x51_46_49_fb);
  whole.writeUInt32BE(3, 4);
  whole.writeBigUInt64BE(2n ** 63n, 8);
  writeFileSync(pathOf(NAME), whole);
  await expect(find()).rejects.toThrow("its header is damaged, or larger than 64 KiB");
  whole.fill(0xff, 100);
  whole.writeBigUInt64BE(0n, 8);
  writeFileSync(pathOf(NAME), whole);
  await expect(find()).rejects.toThrow("its header is damaged");
});
