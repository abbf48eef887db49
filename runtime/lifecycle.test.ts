import { EventEmitter } from "node:events";
import { expect, test, vi } from "vitest";
import { type ProcessPort, processSettings, runService, type ServiceContext, whyNotStarted } from "./lifecycle.ts";
import type { Service } from "./service.ts";

class FakeProcess extends EventEmitter {
  readonly env = { BERTH_LOG_LEVEL: "silent" };
  out = "";
  err = "";
  readonly stdout = { write: (text: string) => (this.out += text) };
  readonly stderr = { write: (text: string) => (this.err += text) };
}

interface Settings {
  readonly logLevel: string;
}

function run(
  service: Partial<Service>,
  options: { readonly argv?: readonly string[]; readonly closeDeadlineMs?: number } = {},
): { readonly host: FakeProcess; readonly exit: Promise<number>; context: () => ServiceContext<Settings> } {
  const host = new FakeProcess();
  let context: ServiceContext<Settings> | undefined;
  const exit = runService(host as unknown as ProcessPort, {
    name: "try",
    argv: options.argv ?? [],
    declaration: { command: "berth try", about: "Tries.", settings: processSettings },
    create: (given) => {
      context = given;
      return { start: async () => undefined, close: async () => undefined, ...service };
    },
    readyNote: () => "127.0.0.1:1",
    ...(options.closeDeadlineMs === undefined ? {} : { closeDeadlineMs: options.closeDeadlineMs }),
  });
  return { host, exit, context: () => context as ServiceContext<Settings> };
}

test("prints ready only once it serves, closes on SIGTERM and ends with 0", async () => {
  const started = Promise.withResolvers<void>();
  const close = vi.fn(async () => undefined);
  const { host, exit } = run({ start: () => started.promise, close });
  await Promise.resolve();
  expect(host.out).toBe("");
  started.resolve();
  await expect.poll(() => host.out).toBe("ready 127.0.0.1:1\n");
  host.emit("SIGTERM", "SIGTERM");
  expect(await exit).toBe(0);
  expect(close).toHaveBeenCalledOnce();
  expect(host.eventNames()).toEqual([]);
});

test("a signal while it starts closes it without ever being ready", async () => {
  const close = vi.fn(async () => undefined);
  const { host, exit } = run({ start: () => new Promise(() => undefined), close });
  host.emit("SIGINT", "SIGINT");
  expect(await exit).toBe(0);
  expect(close).toHaveBeenCalledOnce();
  expect(host.out).toBe("");
});

test("ends with 1 when it cannot start", async () => {
  const { exit } = run({ start: async () => Promise.reject(new Error("no database")) });
  expect(await exit).toBe(1);
});

test("a port that another program has is a reason to name it, with what to do", () => {
  const busy = Object.assign(new Error("listen"), { code: "EADDRINUSE", address: "127.0.0.1", port: 8774 });
  expect(whyNotStarted(busy)).toMatch(/another program listens on 127\.0\.0\.1:8774: stop that program/);
  expect(whyNotStarted(new Error("no database"))).toBe("the process could not start");
});

test("an unexpected error closes the service, which then exits with 1", async () => {
  const close = vi.fn(async () => undefined);
  const { host, exit } = run({ close });
  await expect.poll(() => host.out).toContain("ready");
  host.emit("unhandledRejection", new Error("bug"));
  host.emit("uncaughtException", new Error("what followed from it"));
  expect(await exit).toBe(1);
  expect(close).toHaveBeenCalledOnce();
});

test("a service that cannot continue exits with 1", async () => {
  const { host, exit, context } = run({});
  await expect.poll(() => host.out).toContain("ready");
  context().fail(new Error("journal lost"));
  expect(await exit).toBe(1);
});

test("a close that hangs is cut short at its deadline", async () => {
  const { host, exit } = run({ close: () => new Promise(() => undefined) }, { closeDeadlineMs: 10 });
  host.emit("SIGTERM", "SIGTERM");
  expect(await exit).toBe(1);
});

test("a second signal cuts the close short", async () => {
  const { host, exit } = run({ close: () => new Promise(() => undefined) });
  host.emit("SIGTERM", "SIGTERM");
  host.emit("SIGTERM", "SIGTERM");
  expect(await exit).toBe(1);
});

test("a bad setting is one line and exit code 2, help is exit code 0, and the service is not created", async () => {
  const bad = run({}, { argv: ["--log-level", "loud"] });
  expect(await bad.exit).toBe(2);
  expect(bad.host.err).toMatch(/^berth try: BERTH_LOG_LEVEL \(--log-level\) is wrong: "loud"; allowed: .*\n$/);
  const help = run({}, { argv: ["--help"] });
  expect(await help.exit).toBe(0);
  expect(help.host.out).toContain("usage: berth try");
  expect([bad.context(), help.context()]).toEqual([undefined, undefined]);
});
