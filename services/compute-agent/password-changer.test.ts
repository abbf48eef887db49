import { expect, test } from "vitest";
import type { ConductorStream } from "../../core/agent/link.ts";
import type { ConductorMessage } from "../../proto/gen/berth/agent.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import type { Driver, FoundPower } from "./driver.ts";
import { GuestChains } from "./guest-chains.ts";
import { PasswordChanger } from "./password-changer.ts";

const NAME = { host: "h", serverUuid: "s", attemptId: "t/0" };

/** Sends a password while another order of the guest takes this long. Returns the answer, the passwords of the driver's calls, and the log. */
async function change({
  host = "h",
  busyMs = 0,
  power = "running" as FoundPower,
  driver = {} as { readonly changePassword?: Driver["changePassword"] },
}) {
  const clock = new ManualClock();
  const chains = new GuestChains();
  const called: string[] = [];
  const logged: string[] = [];
  const changer = new PasswordChanger({
    ...{ clock, chains, hosts: new Set(["h"]) },
    driver: {
      powersOf: async () => [power],
      changePassword: async (_, password) => void called.push(password),
      ...driver,
    },
    events: { driverStuck: () => undefined, passwordFailed: (_, reason) => void logged.push(reason) },
  });
  const busy = Promise.withResolvers<void>();
  const other = chains.enter(NAME, () => busy.promise);
  const answers: ConductorMessage["body"][] = [];
  const from = { send: ({ body }: ConductorMessage) => answers.push(body) } as unknown as ConductorStream;
  const changed = changer.change({ ...NAME, host, query: 7, password: "secret" }, from);
  clock.advance(busyMs);
  busy.resolve();
  await Promise.all([other, changed]);
  return { called, logged, answer: answers.map((body) => body?.value) };
}
const DONE = { host: "h", query: 7, absent: false, unsupported: false, failed: "" };

test("the password of a guest that runs or is rescued is changed after another order of the guest", async () => {
  for (const power of ["running", "rescued"] as const)
    expect(await change({ power, busyMs: 2_000 })).toEqual({ called: ["secret"], logged: [], answer: [DONE] });
});

test("a guest that does not run keeps its password", async () => {
  for (const power of ["stopped", "paused", "missing", "unknown"] as const) {
    const { called, answer } = await change({ power });
    expect([called, answer]).toEqual([[], [{ ...DONE, failed: "instance s is not running" }]]);
  }
});

test("a password is not changed so late that nobody would learn of it", async () => {
  const { called, answer } = await change({ busyMs: 3_000 });
  expect([called, answer]).toEqual([[], [{ ...DONE, failed: expect.stringContaining("busy with another order") }]]);
});

test("another agent's host, a driver without passwords, and a driver that fails are told apart, without the driver's words", async () => {
  expect((await change({ host: "other" })).answer).toEqual([{ ...DONE, host: "other", absent: true }]);
  expect((await change({ driver: { changePassword: undefined } })).answer).toEqual([{ ...DONE, unsupported: true }]);
  const failing = { changePassword: () => Promise.reject(new Error("the guest's agent is silent")) };
  const { answer, logged } = await change({ driver: failing });
  expect([answer, logged]).toEqual([
    [{ ...DONE, failed: "error setting admin password" }],
    ["the guest's agent is silent"],
  ]);
});
