import { pino } from "pino";
import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { countObstacles, describeObstacles } from "../../adapters/postgres/follower/follower-telemetry.ts";
import { LedgerFollower } from "../../adapters/postgres/follower/ledger-follower.ts";
import { LedgerView } from "../../core/ledger/ledger-view.ts";
import { systemClock } from "../../runtime/clock.ts";
import { openMetrics } from "./open-metrics.ts";

const followerOf = (cell: string) => {
  const view = new LedgerView();
  const events = { loaded: () => {}, lost: () => {} };
  // The follower is never started, so it is not connected and keeps reporting why it does not follow.
  const follower = new LedgerFollower({ cell, databaseUrl: "postgres://nowhere", view, clock: systemClock, events });
  return { follower, view };
};

test("the metrics address reports why a view does not follow its cell, and clients only read that it does not", async () => {
  const followers = [followerOf("secret-east"), followerOf("secret-west")];
  const addresses: { readonly host: string; readonly port: number }[] = [];
  const logger = pino({}, { write: (line: string) => void addresses.push(JSON.parse(line)) });
  const listen = { host: "127.0.0.1", port: 0 };
  const metrics = openMetrics(listen, new Registry(), logger, () => describeObstacles(followers));
  await metrics.start();
  try {
    const [{ host, port } = listen] = addresses;
    const told = await (await fetch(`http://${host}:${port}/readyz`)).text();
    expect(told).toMatch(/^ready\n.*cell secret-east.*being loaded\n.*cell secret-west.*\n$/);
  } finally {
    await metrics.close();
  }
  expect(countObstacles(followers)).toEqual([expect.stringMatching(/^no servers are placed in 2 of 2 cells/)]);
  expect(countObstacles(followers).join()).not.toContain("secret");
});
