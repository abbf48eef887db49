import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { createNatsBus, type NatsBus } from "../adapters/nats/nats-bus.ts";
import {
  apiStreams,
  cellConsolesSubject,
  cellEventsForApi,
  cellEventsSubject,
  cellStreams,
  cellTasksConsumer,
  cellTasksSubject,
} from "../adapters/nats/streams.ts";
import { type ChildServer, startChildServer } from "../runtime/child-server.ts";
import { eventually } from "../test/rigs/eventually.ts";
import { natsHubConfig, natsLeafConfig } from "./nats-leaf-config.ts";

const dir = mkdtempSync(join(tmpdir(), "berth-leaf-"));
const closers: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closers.reverse()) await close();
  rmSync(dir, { recursive: true, force: true });
});

const passwords = { apiPassword: "p-api", leafPassword: "p-leaf", conductorPassword: "p-conductor" };
/** Below the ports that the system assigns automatically. */
const base = 20_000 + (process.pid % 3_000) * 4;

/** The configuration has the ports inside containers, but here both servers share one machine. */
function onThisMachine(text: string, offset: number): string {
  return text
    .replaceAll("0.0.0.0:4222", `127.0.0.1:${base + offset}`)
    .replaceAll(
      /(0\.0\.0\.0|@localhost):7422/g,
      (_, host: string) => `${host === "0.0.0.0" ? "127.0.0.1" : host}:${base + 2}`,
    )
    .replace(/^http: .*$/m, "")
    .replace(/cluster \{[\s\S]*?\n\}\n/, "");
}

async function start(name: string, text: string, port: number): Promise<ChildServer> {
  const file = join(dir, `${name}.conf`);
  writeFileSync(file, text);
  const server = await startChildServer({ command: "nats-server", answer: "INFO ", port, args: () => ["-c", file] });
  closers.push(() => server.stop());
  return server;
}

function bus(user: string, password: string, offset: number): NatsBus {
  const opened = createNatsBus({
    url: `nats://${user}:${password}@127.0.0.1:${base + offset}`,
    name: user,
    timeoutMs: 1_000,
  });
  closers.push(() => opened.close());
  return opened;
}

test("the API tier reaches a cell's streams through the hub, conductors reach them at the leaf, and the cell's queue works without the hub", async () => {
  const cells = [{ name: "c1", ...passwords }];
  const hub = { servers: ["localhost"], server: "localhost", routePassword: "r", cells, ...passwords };
  const hubText = onThisMachine(natsHubConfig({ ...hub, storeDir: join(dir, "hub") }), 0);
  const leaf = { cell: "c1", hubServers: ["localhost"], ...passwords, storeDir: join(dir, "leaf") };
  const hubServer = await start("hub", hubText, base);
  await start("leaf", onThisMachine(natsLeafConfig(leaf), 1), base + 1);

  const own = bus("api", "p-api", 0);
  await own.ensureStreams(apiStreams);
  const above = bus("api-c1", "p-api", 0);
  await eventually(
    "the leaf to be joined",
    () =>
      above.ensureStreams(cellStreams("c1")).then(
        () => true,
        () => false,
      ),
    {
      everyMs: 100,
      withinMs: 20_000,
    },
  );
  const below = bus("conductor-c1", "p-conductor", 1);
  const tasks: string[] = [];
  await below.consume(cellTasksConsumer, { maxInFlight: 10 }, (message) => {
    tasks.push(Buffer.from(message.data).toString());
    message.ack();
  });
  const events: string[] = [];
  await above.consume(cellEventsForApi, { maxInFlight: 10 }, (message) => {
    events.push(Buffer.from(message.data).toString());
    message.ack();
  });
  await above.publish(cellTasksSubject("c1"), Buffer.from("build"));
  await below.publish(cellEventsSubject("c1"), Buffer.from("built"));
  await eventually("the task below and the event above", () => tasks.length === 1 && events.length === 1, {
    everyMs: 20,
    withinMs: 10_000,
  });
  await below.answer(cellConsolesSubject("c1"), async (question) => Buffer.from(`${Buffer.from(question)}!`));
  const ask = () => above.ask(cellConsolesSubject("c1"), Buffer.from("console"), { timeoutMs: 5_000 });
  const answer = await eventually("the answer from below", () => ask().catch(() => null), {
    everyMs: 50,
    withinMs: 10_000,
  });
  expect(Buffer.from(answer).toString()).toBe("console!");

  await hubServer.stop();
  await below.publish(cellEventsSubject("c1"), Buffer.from("built while the hub was away"));
  await start("hub", hubText, base);
  await eventually("the event that was kept", () => events.length === 2, { everyMs: 50, withinMs: 30_000 });
}, 90_000);
