import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { systemClock } from "../../runtime/clock.ts";
import { ConductorEvents } from "./events.ts";

test("the log names the first twenty servers whose guests a host has lost, counts all of them, and says what heals them", () => {
  const lines: string[] = [];
  const logger = pino({ level: "error" }, { write: (line) => void lines.push(line) });
  const events = new ConductorEvents({ logger, registry: new Registry(), clock: systemClock, taskCount: () => 0 });
  const servers = Array.from({ length: 21 }, (_, index) => `server-${index}`);
  events.guestsMissing("host-1", servers);
  const [told] = lines.map((line) => JSON.parse(line));
  expect(told).toMatchObject({ host: "host-1", count: 21, servers: servers.slice(0, 20) });
  expect(told.msg).toContain("rebuild the server");
});
