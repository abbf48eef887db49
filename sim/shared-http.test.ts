import Fastify, { type FastifyError, type FastifyInstance, type FastifyServerOptions } from "fastify";
import { expect, test } from "vitest";
import { type ApiCall, callInProcess } from "./call-in-process.ts";
import { sharedHttp } from "./shared-http.ts";

const ownHttp = (options: FastifyServerOptions): FastifyInstance => Fastify(options);
/** An api that names itself in all its answers. */
async function api(
  name: string,
  make: (options: FastifyServerOptions) => FastifyInstance,
  lengthMax = 5,
  bodyLimit = 100,
) {
  const answered: string[] = [];
  const routes: string[] = [];
  const http = make({
    ...{ logger: false, bodyLimit, exposeHeadRoutes: false },
    genReqId: () => `req-${name}`,
    rewriteUrl: ({ url = "" }) => url,
  });
  http.decorateRequest("hooked", null);
  http.addHook("onRoute", (route) => {
    routes.push(`${route.method} ${route.url}`);
    route.preHandler = (_request, reply, done) => {
      reply.header("x-route", name);
      done();
    };
  });
  http.setErrorHandler(({ message }: FastifyError, _request, reply) => reply.code(400).send(`${name}: ${message}`));
  http.setNotFoundHandler((_request, reply) => reply.code(404).send(`${name} has no such route`));
  http.addHook("onResponse", async ({ id, url }) => {
    answered.push(`${id} ${url}`);
  });
  http.get("/plain", async ({ id }) => `${name} ${id}`);
  http.register(
    (scope, _options, done) => {
      scope.addHook("onRequest", async (request) => Object.assign(request, { hooked: name }));
      const body = { type: "object", properties: { text: { type: "string", maxLength: lengthMax } } };
      scope.post("/text/:id", { schema: { body } }, async ({ body, params }, reply) => {
        const { hooked } = reply.request as unknown as { readonly hooked: string };
        return { name, hooked, body, params, route: reply.getHeader("x-route") };
      });
      scope.delete("/broken", async () => {
        throw new Error("it broke");
      });
      done();
    },
    { prefix: "/below" },
  );
  await http.ready();
  return { http, answered, routes };
}

const CALLS: readonly ApiCall[] = [
  { method: "GET", url: "/plain" },
  { method: "POST", url: "/below/text/7", payload: { text: "abc" } },
  { method: "POST", url: "/below/text/7", payload: { text: "too long" } },
  { method: "POST", url: "/below/text/7", payload: { text: "x".repeat(200) } },
  { method: "DELETE", url: "/below/broken" },
  { method: "PUT", url: "/nowhere", payload: {} },
];

test.each(CALLS)("each api answers $method $url as a server of its own would", async (call) => {
  const own = { a: await api("a", ownHttp), b: await api("b", ownHttp) };
  const shared = { a: await api("a", sharedHttp), b: await api("b", sharedHttp) };
  for (const name of ["b", "a"] as const) {
    const answer = await callInProcess(shared[name].http, call, {});
    expect(answer).toEqual(await callInProcess(own[name].http, call, {}));
    expect(shared[name].answered).toEqual(own[name].answered);
    expect(shared[name].routes).toEqual(own[name].routes);
  }
  for (const { http } of Object.values(own)) await http.close();
});

test("an api that registers something else does not share the server of the others", async () => {
  const call: ApiCall = { method: "POST", url: "/below/text/7", payload: { text: "abc" } };
  const lenient = await api("lenient", sharedHttp);
  const strict = await api("strict", sharedHttp, 2);
  expect((await callInProcess(lenient.http, call, {})).status).toBe(200);
  expect((await callInProcess(strict.http, call, {})).status).toBe(400);
  const small = await api("small", sharedHttp, 5, 10);
  expect((await callInProcess(small.http, call, {})).status).toBe(400);
});

test("the first api of a process draws as many random numbers as the next ones", async () => {
  const { random } = Math;
  const draws: number[] = [];
  for (const name of ["first", "second", "third"]) {
    let drawn = 0;
    Math.random = () => {
      drawn += 1;
      return random();
    };
    await api(name, sharedHttp, 9).finally(() => {
      Math.random = random;
    });
    draws.push(drawn);
  }
  expect(new Set(draws).size).toBe(1);
});
