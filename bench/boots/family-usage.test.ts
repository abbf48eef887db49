import { spawn } from "node:child_process";
import { once } from "node:events";
import { expect, test } from "vitest";
import { familyUsage, partOfTitle, usedBetween } from "./family-usage.ts";

test("processes of Postgres are told apart by what they do", () => {
  expect(partOfTitle("postgres: berth berth_api [local] UPDATE ")).toBe("Postgres: API database");
  expect(partOfTitle("postgres: berth berth_cell_cell-1 127.0.0.1(4711) idle")).toBe("Postgres: cells");
  expect(partOfTitle("postgres: walsender berth berth_cell_cell-1 [local] streaming 0/1")).toBe(
    "Postgres: views of cells",
  );
  expect(partOfTitle("postgres: walwriter ")).toBe("Postgres: background");
  expect(partOfTitle("/bin/sh -c true")).toBe("other processes");
});

test("the CPU of a grandchild counts, and that of the process itself by thread", async () => {
  // It burns CPU for a while, and tells when that is done.
  const burn =
    "const end = process.cpuUsage().user + 60_000; while (process.cpuUsage().user < end); console.log('done')";
  const middle = `require("node:child_process").spawn(process.execPath, ["-e", ${JSON.stringify(`${burn}; process.stdin.resume()`)}], { stdio: ["pipe", "inherit", "inherit"] })`;
  const child = spawn(process.execPath, ["-e", middle], { stdio: ["pipe", "pipe", "inherit"] });
  const closed = once(child, "close");
  try {
    await once(child.stdout, "data");
    const usage = familyUsage(child.pid!);
    expect(usage.get("other processes")).toBeGreaterThanOrEqual(50);
    expect(usage.get("main thread")).toBeGreaterThan(0);
  } finally {
    child.kill();
    await closed;
  }
});

test("a process that has ended has used nothing", async () => {
  const child = spawn(process.execPath, ["-e", ""], { stdio: "ignore" });
  await once(child, "exit");
  expect(familyUsage(child.pid!)).toEqual(new Map());
});

test("what was used before the work began does not count, and a new part counts from its start", () => {
  const before = new Map([
    ["main thread", 100],
    ["cells", 7],
  ]);
  const after = new Map([
    ["main thread", 140],
    ["cells", 7],
    ["client", 2],
  ]);
  expect(usedBetween(before, after, 4)).toEqual(
    new Map([
      ["main thread", 10],
      ["cells", 0],
      ["client", 0.5],
    ]),
  );
});
