import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { chooseParts, HELP } from "./choose-parts.ts";
import { DEFAULT_PARTS, PART_NAMES, PARTS, partsOfFile } from "./parts.ts";

const partsOf = (...args: readonly string[]) => {
  const asked = chooseParts(args, "");
  return asked.kind === "run" ? asked.parts : asked;
};

test("without switches all parts run but those that take hours", () => {
  expect(partsOf()).toEqual(["samples", "client", "horizon", "tempest", "contracts"]);
});

test("switches choose parts, add some and leave some out, in the order of the summary", () => {
  expect(partsOf("--only", "horizon,client")).toEqual(["client", "horizon"]);
  expect(partsOf("--with", "tempest-trial", "--without", "samples,horizon,client")).toEqual([
    ...["tempest", "tempest-trial", "contracts"],
  ]);
});

test("a wrong switch is refused with what is allowed", () => {
  expect(partsOf("--only", "tempests")).toEqual({
    kind: "wrong",
    why: `--only: there is no part "tempests". The parts are ${PART_NAMES.join(", ")}.`,
  });
  expect(partsOf("--parts", "client")).toMatchObject({ kind: "wrong", why: expect.stringContaining("--parts") });
  expect(partsOf("--only", "client", "--without", "client")).toMatchObject({ kind: "wrong" });
});

test("the switch for the checkout of Nova goes before the environment", () => {
  expect(chooseParts([], "/env")).toMatchObject({ novaSource: "/env" });
  expect(chooseParts(["--nova-source", "/switch"], "/env")).toMatchObject({ novaSource: "/switch" });
});

test("the help names each part", () => {
  expect(chooseParts(["--help"], "")).toEqual({ kind: "help" });
  for (const name of PART_NAMES) expect(HELP.join("\n")).toContain(`  ${name} `);
});

test("each part has files that exist, and the parts of a file are known", () => {
  const files = PART_NAMES.flatMap((name) => PARTS[name].files.map((file) => ({ name, file })));
  expect(files.filter(({ file }) => !existsSync(join(import.meta.dirname, "..", file)))).toEqual([]);
  expect(partsOfFile("/clone/test/openstack/neutron.test.ts")).toEqual(["contracts"]);
  expect(partsOfFile("/clone/test/openstack/tempest/trial.test.ts")).toEqual(["tempest-trial"]);
  expect(partsOfFile("/clone/test/openstack/real-cloud.test.ts")).toEqual([
    "client",
    "horizon",
    "tempest",
    "heat",
    "masakari",
    "rally",
  ]);
  expect(PARTS.contracts.files).toContain("keystone.test.ts");
  expect(DEFAULT_PARTS).not.toContain("tempest-beside");
});
