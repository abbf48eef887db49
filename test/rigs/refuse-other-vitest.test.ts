import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { refuseOtherVitest } from "./refuse-other-vitest.ts";

const trees = mkdtempSync(join(tmpdir(), "berth-trees-"));
afterAll(() => rmSync(trees, { recursive: true }));

/** A tree with a Vitest, and the link by which a shell finds it. */
function tree(name: string): { readonly root: string; readonly link: string } {
  const root = join(trees, name);
  const modules = join(root, "node_modules");
  mkdirSync(join(modules, ".bin"), { recursive: true });
  mkdirSync(join(modules, "vitest"));
  writeFileSync(join(modules, "vitest/vitest.mjs"), "");
  const link = join(modules, ".bin/vitest");
  symlinkSync("../vitest/vitest.mjs", link);
  return { root, link };
}

test("the Vitest of another tree is refused with both places", () => {
  const [own, other] = [tree("own"), tree("other")];
  expect(() => refuseOtherVitest(own.root, own.link)).not.toThrow();
  expect(() => refuseOtherVitest(own.root, other.link)).toThrow(
    `this is the Vitest in ${other.root}/node_modules/vitest, and the tests of ${own.root} import the one in ${own.root}/node_modules/vitest`,
  );
});

test("a tree that shares the modules of another one is given its Vitest, and other programs are not refused", () => {
  const { root, link } = tree("shared");
  const linked = join(trees, "linked");
  mkdirSync(linked);
  symlinkSync(join(root, "node_modules"), join(linked, "node_modules"));
  expect(() => refuseOtherVitest(linked, join(linked, "node_modules/.bin/vitest"))).not.toThrow();
  expect(() => refuseOtherVitest(linked, link)).not.toThrow();
  expect(() => refuseOtherVitest(root, process.execPath)).not.toThrow();
  expect(() => refuseOtherVitest(root, undefined)).not.toThrow();
});
