import { expect, test } from "vitest";
import { missingLine, readTutorial, stepsOf } from "./read-tutorial.ts";

test("a console block has commands, their continuations and their output", () => {
  expect(stepsOf("$ one \\\n> two\nshown\n\nmore\n$ three\n")).toEqual([
    { command: "one \\\ntwo", output: ["shown", "", "more"] },
    { command: "three", output: [] },
  ]);
  expect(() => stepsOf("shown\n$ one\n")).toThrow('no command precedes the output "shown"');
});

test("output matches whatever the widths of its columns are, and … stands for any text", () => {
  const output = "HOST   STATE\nhost-1 up\nhost-2 down, disabled\n1 of 2";
  expect(missingLine(["HOST  STATE", "…", "host-2 down…"], output)).toBe(null);
  expect(missingLine(["… of 2"], output)).toBe(null);
  expect(missingLine(["host-2 down"], output)).toBe("host-2 down");
  expect(missingLine(["host-2 down…", "host-1 up"], output)).toBe("host-1 up");
  expect(missingLine(["1 o. 2"], output)).toBe("1 o. 2");
});

test("a part of a page ends at the next heading of its level, and not at a comment in code", () => {
  const { files, lines } = readTutorial("docs/filters-and-weighers.md", "Your own");
  expect(files.map(({ name }) => name)).toEqual(["only-cold-aisle.ts"]);
  expect(lines).toContain("npx berth dev --filters ./only-cold-aisle.ts");
  expect(() => readTutorial("docs/filters-and-weighers.md", "Nobody's own")).toThrow('has no heading "Nobody\'s own"');
});
