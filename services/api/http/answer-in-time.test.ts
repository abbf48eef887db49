import Fastify, { type FastifyReply } from "fastify";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { answerInTime } from "./answer-in-time.ts";

const LIMIT_MS = 1_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
});

function serve(handler: (reply: FastifyReply) => Promise<unknown>) {
  const http = Fastify();
  const errors: string[] = [];
  http.setErrorHandler((error: Error & { code?: string }, _request, reply) => {
    errors.push(error.code ?? error.message);
    return reply.code(503).send({ late: true });
  });
  answerInTime(http, LIMIT_MS);
  http.route({ method: ["GET", "POST"], url: "/", handler: (_request, reply) => handler(reply) });
  return { http, errors };
}

it("answers for a handler that takes too long, and ignores its late answer", async () => {
  const work = Promise.withResolvers<unknown>();
  const began = Promise.withResolvers<void>();
  const { http, errors } = serve(() => {
    began.resolve();
    return work.promise;
  });
  const answering = http.inject("/");
  await began.promise;
  vi.advanceTimersByTime(LIMIT_MS);
  const answer = await answering;
  expect(answer.statusCode).toBe(503);
  expect(answer.json()).toEqual({ late: true });
  work.resolve({ late: false });
  await new Promise(setImmediate);
  expect(errors).toEqual(["FST_ERR_HANDLER_TIMEOUT"]);
  await http.close();
});

it("sets no time limit for a request with a body, since it may be changing something", async () => {
  const work = Promise.withResolvers<unknown>();
  const began = Promise.withResolvers<void>();
  const { http, errors } = serve(() => {
    began.resolve();
    return work.promise;
  });
  const answering = http.inject({ method: "POST", url: "/", payload: { a: 1 } });
  await began.promise;
  vi.advanceTimersByTime(10 * LIMIT_MS);
  work.resolve({ late: false });
  expect((await answering).json()).toEqual({ late: false });
  expect(errors).toEqual([]);
  await http.close();
});

it("ends the connection of an answer that has begun", async () => {
  const began = Promise.withResolvers<void>();
  const { http } = serve((reply) => {
    reply.raw.writeHead(200);
    reply.raw.write("some");
    began.resolve();
    return new Promise(() => undefined);
  });
  const url = await http.listen({ host: "127.0.0.1", port: 0 });
  const answering = fetch(url).then((answer) => answer.text());
  const ended = expect(answering).rejects.toThrow();
  await began.promise;
  vi.advanceTimersByTime(LIMIT_MS);
  await ended;
  await http.close();
});

it("sends nothing to a client that has disconnected", async () => {
  const began = Promise.withResolvers<void>();
  const gone = Promise.withResolvers<void>();
  const { http, errors } = serve((reply) => {
    reply.raw.once("close", () => gone.resolve());
    began.resolve();
    return new Promise(() => undefined);
  });
  const url = await http.listen({ host: "127.0.0.1", port: 0 });
  const hangUp = new AbortController();
  const answering = expect(fetch(url, { signal: hangUp.signal })).rejects.toThrow();
  await began.promise;
  hangUp.abort();
  await answering;
  await gone.promise;
  vi.advanceTimersByTime(LIMIT_MS);
  expect(errors).toEqual([]);
  await http.close();
});

it("leaves nothing behind when the answer came in time", async () => {
  const { http, errors } = serve(() => Promise.resolve({ late: false }));
  const answer = await http.inject("/");
  expect(answer.json()).toEqual({ late: false });
  expect(vi.getTimerCount()).toBe(0);
  vi.advanceTimersByTime(2 * LIMIT_MS);
  expect(errors).toEqual([]);
  await http.close();
});
