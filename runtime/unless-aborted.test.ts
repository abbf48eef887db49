import { expect, test } from "vitest";
import { unlessAborted } from "./unless-aborted.ts";

test("work that ends in time has its outcome", async () => {
  const { signal } = new AbortController();
  expect(await unlessAborted(Promise.resolve(1), signal)).toBe(1);
  await expect(unlessAborted(Promise.reject(new Error("broken")), signal)).rejects.toThrow("broken");
});

test("work that hangs is left alone when the signal is raised", async () => {
  const control = new AbortController();
  const waiting = unlessAborted(new Promise(() => undefined), control.signal);
  control.abort(new Error("called off"));
  await expect(waiting).rejects.toThrow("called off");
});

test("a signal that was raised before counts, and work that fails later is ignored", async () => {
  const { promise, reject } = Promise.withResolvers<never>();
  await expect(unlessAborted(promise, AbortSignal.abort(new Error("called off")))).rejects.toThrow("called off");
  reject(new Error("too late"));
  await expect(unlessAborted(Promise.resolve(1), AbortSignal.abort(new Error("called off")))).rejects.toThrow();
});
