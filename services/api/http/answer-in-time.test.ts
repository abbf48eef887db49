import Fastify from "fastify";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { answerInTime } from "./answer-in-time.ts";

const LIMIT_MS = 1_000;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
});

function serve(handler: () => Promise<unknown>) {
  const http = Fastify();
  const errors: string[] = [];
  http.setErrorHandler((error: Error & { code?: string }, _request, reply) => {
    errors.push(error.code ?? error.message);
    return reply.code(503).send({ late: true });
  });
  answerInTime(http, LIMIT_MS);
  http.get("/", handler);
  return { http, errors };
}

it("answers for a handler that takes too long, and heeds the handler no more", async () => {
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

it("leaves nothing behind when the answer came in time", async () => {
  const { http, errors } = serve(() => Promise.resolve({ late: false }));
  const answer = await http.inject("/");
  expect(answer.json()).toEqual({ late: false });
  expect(vi.getTimerCount()).toBe(0);
  vi.advanceTimersByTime(2 * LIMIT_MS);
  expect(errors).toEqual([]);
  await http.close();
});
