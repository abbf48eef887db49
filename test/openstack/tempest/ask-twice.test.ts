import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { askTwice, isOutage, type TwiceCall, twiceCalls } from "./ask-twice.ts";

type Served = { readonly status: number; readonly answer?: unknown };

/** A Compute API that answers with what `serve` returns, and notes the calls. */
async function startApi(serve: (call: string) => Served) {
  const calls: string[] = [];
  const server = createServer((request, response) => {
    const call = `${request.method} ${request.url}`;
    calls.push(call);
    const { status, answer } = serve(call);
    response.writeHead(status).end(answer === undefined ? "" : JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => new Promise<void>((resolve) => void server.close(() => resolve())));
  const { port } = server.address() as AddressInfo;
  return { calls, cloud: { url: `http://127.0.0.1:${port}`, issue: async () => "token" } };
}

const MAKE: TwiceCall = { method: "POST", path: "/things", body: { thing: {} }, makes: "thing" };
const USE: TwiceCall = { method: "PUT", path: "/things/{thing}/use" };

test("both answers of each call are told without ids, and what the calls made is deleted", async () => {
  const ids = [randomUUID(), randomUUID()];
  const left = [...ids];
  const { calls, cloud } = await startApi((call) => {
    if (call === "POST /things") return { status: 200, answer: { thing: { id: left.shift() } } };
    return call.startsWith("PUT")
      ? { status: 409, answer: { conflictingRequest: { code: 409, message: `${ids[0]} is in aggregate 7` } } }
      : { status: 204 };
  });
  expect(await askTwice(cloud, [MAKE, USE])).toEqual([
    'POST /things {"thing":{}}: 200 , then 200 ',
    "PUT /things/{thing}/use undefined: 409 ID is in ID, then 409 ID is in ID",
  ]);
  expect(calls).toEqual([
    ...["POST /things", "POST /things", `PUT /things/${ids[0]}/use`, `PUT /things/${ids[0]}/use`],
    ...[`DELETE /things/${ids[0]}`, `DELETE /things/${ids[1]}`],
  ]);
});

test("an answer that differs makes another line, and one of a cloud that fails is told apart", async () => {
  const lineOf = async (statuses: readonly number[]) => {
    const left = [...statuses];
    return (await askTwice((await startApi(() => ({ status: left.shift() ?? 204 }))).cloud, [USE]))[0] ?? "";
  };
  expect(await lineOf([202, 409])).not.toBe(await lineOf([202, 202]));
  expect(isOutage(await lineOf([202, 409]))).toBe(false);
  expect([await lineOf([503, 202]), await lineOf([202, 500])].map(isOutage)).toEqual([true, true]);
});

test("a call that uses what another one makes comes after it", () => {
  const made = new Set<string>();
  for (const { path, makes } of twiceCalls({ flavor: "1", image: "i", networkId: "n" })) {
    for (const [, name] of path.matchAll(/\{(\w+)\}/g)) expect([path, made.has(name ?? "")]).toEqual([path, true]);
    if (makes !== undefined) made.add(makes);
  }
});
