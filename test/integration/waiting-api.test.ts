import { pino } from "pino";
import { afterEach, expect, test } from "vitest";
import { freePort } from "../../runtime/free-port.ts";
import { readSettings } from "../../runtime/settings.ts";
import { openApi } from "../../services/api/open-api.ts";
import type { ApiService } from "../../services/api/service.ts";
import { apiDeclaration } from "../../services/api/settings.ts";
import { CutOff } from "../placement/cut-off.ts";
import { freshDatabase, type TestDatabase } from "../rigs/databases.ts";
import { eventually } from "../rigs/eventually.ts";

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** The answer at the address, or null when no process listens. */
async function ask(url: string) {
  const answer = await fetch(url).catch(() => null);
  if (answer === null) return null;
  return { status: answer.status, retryAfter: answer.headers.get("retry-after"), body: await answer.text() };
}

function open(listen: string, databaseUrl: string): Promise<ApiService> {
  const argv = ["--listen", listen, "--database-url", databaseUrl, "--nats-url", "nats://127.0.0.1:1"];
  const read = readSettings(apiDeclaration, { argv, env: {} });
  if (read.kind !== "settings") throw new Error("no settings");
  const { settings } = read;
  const fail = (error: unknown) => {
    throw error;
  };
  return openApi({ settings, logger: pino({ level: "silent" }), fail }, null);
}

test("an api whose database is away listens at once, is alive, is not ready and says why, and serves when the database is back", async () => {
  const database: TestDatabase = await freshDatabase("api");
  closers.push(() => database.drop());
  const { relay, url } = await CutOff.before(database.url);
  closers.push(() => relay.close());
  relay.cut();
  const listen = `127.0.0.1:${await freePort()}`;
  const opening = open(listen, url);
  // The test may fail before it awaits this promise.
  opening.catch(() => undefined);
  closers.push(() =>
    opening.then(
      (api) => api.close(),
      () => undefined,
    ),
  );
  const base = `http://${listen}`;
  const notReady = await eventually("it says what it waits for", async () => {
    const answer = await ask(`${base}/readyz`);
    return answer?.body.includes("waiting") ? answer : null;
  });
  expect(notReady).toMatchObject({ status: 503, body: "not ready\nwaiting for the API database\n" });
  expect(await ask(`${base}/healthz`)).toMatchObject({ status: 200, body: "ok\n" });
  const call = await ask(`${base}/v2.1/servers?limit=1`);
  expect(call).toMatchObject({ status: 503, retryAfter: "5" });
  const why = "The service is starting and does not accept calls yet.";
  expect(JSON.parse(call?.body ?? "")).toEqual({ serviceUnavailable: { code: 503, message: why } });
  const placement = await ask(`${base}/placement/resource_providers`);
  expect(placement).toMatchObject({ status: 503, retryAfter: "5" });
  expect(JSON.parse(placement?.body ?? "").errors).toMatchObject([{ status: 503, title: "Service Unavailable" }]);
  relay.mend();
  const api = await opening;
  await api.start();
  expect((await ask(`${base}/v2.1/servers`))?.status).toBe(200);
});

test("an api whose address is in use says so at once, whatever the state of its database", async () => {
  const { relay: holder, url } = await CutOff.before("tcp://127.0.0.1:1");
  closers.push(() => holder.close());
  const { host } = new URL(url);
  await expect(open(host, "postgres://berth@127.0.0.1:1/api")).rejects.toMatchObject({ code: "EADDRINUSE" });
});
