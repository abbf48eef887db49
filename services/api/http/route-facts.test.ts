import { randomUUID } from "node:crypto";
import Fastify, { type FastifyError } from "fastify";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Fault } from "./fault.ts";
import { checkFacts } from "./route-facts.ts";

const http = Fastify();
beforeAll(async () => {
  http.decorateRequest("call", null);
  http.addHook("onRoute", checkFacts);
  http.addHook("onRequest", (request, _reply, done) => {
    const { minor, role } = request.headers;
    const identity = { projectId: "p", userId: "u", isAdmin: role === "admin", roles: [] };
    request.call = { requestId: randomUUID(), minor: Number(minor), identity, token: null, policy: null, rules: [] };
    done();
  });
  http.setErrorHandler((error: Fault | FastifyError, _request, reply) =>
    reply.code(error instanceof Fault ? error.status : (error.statusCode ?? 500)).send(),
  );
  const actions = new Map([
    ["early", { until: 5 }],
    ["late", { since: 17, rule: "late" }],
  ]);
  const body = { type: "object", maxProperties: 1 };
  http.post("/actions", { config: { actions }, schema: { body } }, async () => ({}));
  http.get("/ranged", { config: { since: 3, until: 9, rule: "ranged" } }, async () => ({}));
  await http.ready();
});
afterAll(() => http.close());

const act = async (minor: number, payload: unknown, role = "member") =>
  (
    await http.inject({
      ...{ method: "POST", url: "/actions", headers: { minor: String(minor), role } },
      payload: payload as object,
    })
  ).statusCode;

test("an action is refused outside its microversions (404) and for callers who are not admins (403)", async () => {
  expect([await act(5, { early: 1 }), await act(6, { early: 1 })]).toEqual([200, 404]);
  expect([await act(16, { late: 1 }, "admin"), await act(17, { late: 1 }, "admin")]).toEqual([404, 200]);
  expect([await act(16, { late: 1 }), await act(17, { late: 1 })]).toEqual([404, 403]);
});

test("actions that are not known, and names that every object has, are left to the handler", async () => {
  expect([await act(1, { other: 1 }), await act(1, { constructor: 1 }), await act(1, {})]).toEqual([200, 200, 200]);
  expect(await act(1, { other: 1, early: 1 })).toBe(400);
});

test("a route is refused outside its microversions before its policy is checked", async () => {
  const get = async (minor: number, role: string) =>
    (await http.inject({ method: "GET", url: "/ranged", headers: { minor: String(minor), role } })).statusCode;
  expect([await get(2, "member"), await get(3, "member"), await get(9, "admin"), await get(10, "admin")]).toEqual([
    ...[404, 403, 200, 404],
  ]);
});
