import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { ApiEvents } from "./events.ts";

test("a cell that sends many events that cannot be read does not fill the log, and another cell is logged all the same", () => {
  const lines: string[] = [];
  const events = new ApiEvents(pino({}, { write: (line) => void lines.push(line) }), new Registry());
  for (let index = 0; index < 1_000; index += 1) events.eventMalformed("cell-1");
  events.eventMalformed("cell-2");
  expect(lines.map((line) => JSON.parse(line).cell)).toEqual(["cell-1", "cell-2"]);
});

test("a dashboard that fails with each change of a server does not fill the log", () => {
  const lines: string[] = [];
  const events = new ApiEvents(pino({}, { write: (line) => void lines.push(line) }), new Registry());
  for (let index = 0; index < 1_000; index += 1) events.dashboardFailed("cell-1", new Error("no such host"));
  expect(lines.map((line) => JSON.parse(line).err.message)).toEqual(["no such host"]);
});
