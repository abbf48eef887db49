import Fastify from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type ApiCall, callInProcess } from "./call-in-process.ts";

const http = () => {
  const server = Fastify({ logger: false, bodyLimit: 100 });
  server.post("/echo", async (request) => ({ got: request.body, version: request.headers["openstack-api-version"] }));
  server.get("/list", async (request) => ({
    query: request.query,
    rows: Array.from({ length: 500 }, (_, row) => row),
  }));
  server.delete("/gone", (_request, reply) => reply.code(204).send());
  server.get("/broken", async () => {
    throw new Error("it broke");
  });
  server.get("/silent", (_request, reply) => reply.raw.destroy(new Error("closed")));
  server.addHook("onResponse", async ({ url }) => {
    answered.push(url);
  });
  return server;
};
let answered: string[] = [];
let server: ReturnType<typeof http>;

beforeEach(async () => {
  answered = [];
  server = http();
  await server.ready();
});
afterEach(() => server.close());

const HEADERS = { "openstack-api-version": "compute 2.90" };
const CALLS: readonly ApiCall[] = [
  { method: "POST", url: "/echo", payload: { name: "ümlaut" } },
  { method: "POST", url: "/echo", payload: { name: "x".repeat(200) } },
  { method: "GET", url: "/list?limit=3" },
  { method: "DELETE", url: "/gone" },
  { method: "GET", url: "/broken" },
  { method: "PUT", url: "/nowhere", payload: {} },
];

test.each(CALLS)("$method $url is answered as over Fastify's inject", async (call) => {
  const { statusCode, payload } = await server.inject({ ...call, headers: HEADERS });
  const answer = await callInProcess(server, call, HEADERS);
  expect(answer).toEqual({ status: statusCode, body: payload });
  expect(answered).toEqual([call.url, call.url]);
});

test("a call whose connection the api closes is rejected", async () => {
  await expect(callInProcess(server, { method: "GET", url: "/silent" }, HEADERS)).rejects.toThrow("closed");
});
