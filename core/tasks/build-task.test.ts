import { describe, expect, test } from "vitest";
import fc from "../../test/rigs/property.ts";
import {
  type BuildEffect,
  type BuildEvent,
  type BuildState,
  type BuildStep,
  beginBuild,
  stepBuild,
} from "./build-task.ts";
import { nextStepAfter } from "./failure-message.ts";

const plan = { hosts: ["host-a", "host-b", "host-c"] };

function run(events: readonly BuildEvent[], start: BuildStep = beginBuild(0, [])): BuildStep[] {
  const steps = [start];
  for (const event of events) steps.push(stepBuild(plan, steps.at(-1)!.state, event));
  return steps;
}
const lastOf = (events: readonly BuildEvent[]): BuildStep => run(events).at(-1)!;
const failed = (selection: number, reason: string, failure: "reschedule" | "abort" = "reschedule"): BuildEvent => ({
  kind: "failed",
  selection,
  failure,
  reason,
});

describe("a build", () => {
  test("calls the first host, commits, and starts the guest only after the commit", () => {
    const steps = run([{ kind: "prepared", selection: 0 }, { kind: "active-committed" }]);
    expect(steps.map((step) => step.effects.map((effect) => effect.kind))).toEqual([
      ["call-host"],
      ["commit-active"],
      ["start-guest", "tell-active"],
    ]);
    expect(steps.at(-1)!.state).toEqual({ kind: "ended", as: "active" });
  });

  test("goes to the alternate when another host may succeed, and destroys the guest on the first host", () => {
    expect(lastOf([failed(0, "disk full")]).effects).toEqual([
      { kind: "hop", from: 0, to: 1, reason: "disk full", result: "failed" },
    ]);
    expect(lastOf([failed(0, "disk full"), { kind: "hop-committed" }]).effects).toEqual([
      { kind: "destroy-guest", selection: 0 },
      { kind: "tell-attempt-failed", selection: 0, reason: "disk full" },
      { kind: "call-host", selection: 1 },
    ]);
  });

  test("skips an alternate that has no room, without calling it", () => {
    const step = lastOf([failed(0, "disk full"), { kind: "hop-skipped", why: "no room" }]);
    expect(step.effects).toEqual([{ kind: "hop", from: 0, to: 2, reason: "disk full", result: "failed" }]);
  });

  test("tries another way to fit on a host whose first way is taken, but none on a host that failed", () => {
    const ways = { hosts: ["host-a", "host-b", "host-b", "host-b", "host-c"] };
    const stepped = (events: readonly BuildEvent[]): BuildStep =>
      events.reduce((step, event) => stepBuild(ways, step.state, event), beginBuild(0, []));
    const skipped: BuildEvent = { kind: "hop-skipped", why: "no room" };
    expect(stepped([failed(0, "disk full"), skipped]).effects).toEqual([
      { kind: "hop", from: 0, to: 2, reason: "disk full", result: "failed" },
    ]);
    const after = [failed(0, "disk full"), skipped, { kind: "hop-committed" } as const, failed(2, "broken")];
    expect(stepped(after).effects).toEqual([{ kind: "hop", from: 2, to: 4, reason: "broken", result: "failed" }]);
  });

  test("calls at most max_attempts hosts, and skips any number of full ones", () => {
    const plan = { hosts: ["host-a", "host-b", "host-c", "host-d", "host-e"], attemptsMax: 2 };
    const stepped = (events: readonly BuildEvent[]): BuildStep =>
      events.reduce((step, event) => stepBuild(plan, step.state, event), beginBuild(0, []));
    const skipped: BuildEvent = { kind: "hop-skipped", why: "no room" };
    const events = [failed(0, "disk full"), skipped, skipped];
    expect(stepped(events).effects).toEqual([{ kind: "hop", from: 0, to: 3, reason: "disk full", result: "failed" }]);
    const end = stepped([...events, { kind: "hop-committed" }, failed(3, "broken")]);
    expect(end.effects).toMatchObject([{ kind: "commit-error", selection: 3 }]);
  });

  describe("when hosts are not connected", () => {
    const uncalled = (selection: number): BuildEvent => ({ kind: "uncalled", selection, reason: "not connected" });
    const committed: BuildEvent = { kind: "hop-committed" };
    const stepped = (events: readonly BuildEvent[], hosts: readonly string[] = plan.hosts): BuildStep =>
      events.reduce((step, event) => stepBuild({ hosts, attemptsMax: 2 }, step.state, event), beginBuild(0, []));

    test("skips them without using up an attempt", () => {
      const events = [uncalled(0), committed, uncalled(1), committed, failed(2, "broken")];
      expect(stepped(events.slice(0, 1)).effects).toMatchObject([{ kind: "hop", to: 1, result: "skipped" }]);
      expect(stepped(events.slice(0, 3)).effects).toMatchObject([{ kind: "hop", to: 2 }]);
      const four = [...plan.hosts, "host-d"];
      expect(stepped(events, four).effects).toMatchObject([{ kind: "hop", from: 2, to: 3, result: "failed" }]);
      const last = [...events, committed, failed(3, "broken")];
      expect(stepped(last, [...four, "host-e"]).effects).toMatchObject([{ kind: "commit-error", selection: 3 }]);
    });

    test("ends when no host is connected, and says that none was tried", () => {
      const none = [uncalled(0), committed, uncalled(1), committed, uncalled(2)];
      const why = "not tried, not connected";
      expect(stepped(none).effects).toMatchObject([
        {
          kind: "commit-error",
          message: `No valid host: exhausted all hosts of the build. None could be called, and no alternate is left: host-a: ${why}; host-b: ${why}; host-c: ${why}`,
        },
      ]);
      const rounds = ["host-a", "host-b", "host-a", "host-b"];
      expect(stepped([uncalled(0), committed, uncalled(1), committed, uncalled(3)], rounds).effects).toMatchObject([
        { kind: "commit-error", selection: 3 },
      ]);
    });

    test("knows after a takeover that skipped hosts were no attempts", () => {
      const past = [{ selection: 0, host: "host-a", result: "skipped", reason: "not connected" }] as const;
      const step = stepBuild({ ...plan, attemptsMax: 2 }, beginBuild(1, past).state, failed(1, "broken"));
      expect(step.effects).toMatchObject([{ kind: "hop", from: 1, to: 2 }]);
    });
  });

  describe("with a plan that repeats three hosts in three rounds", () => {
    const round = ["host-a", "host-b", "host-c"];
    const again = { hosts: [...round, ...round, ...round] };
    const stepped = (events: readonly BuildEvent[]): BuildStep =>
      events.reduce((step, event) => stepBuild(again, step.state, event), beginBuild(0, []));
    const skipped: BuildEvent = { kind: "hop-skipped", why: "no room" };
    const committed: BuildEvent = { kind: "hop-committed" };

    test("stays on the host that failed when all others are full, for three attempts in all", () => {
      const second = [failed(0, "cold"), skipped, skipped];
      expect(stepped(second).effects).toEqual([{ kind: "hop", from: 0, to: 3, reason: "cold", result: "failed" }]);
      const third = [...second, committed, failed(3, "cold")];
      expect(stepped(third).effects).toEqual([{ kind: "hop", from: 3, to: 6, reason: "cold", result: "failed" }]);
      expect(stepped([...third, committed, failed(6, "cold")]).effects).toMatchObject([
        { kind: "commit-error", selection: 6 },
      ]);
    });

    test("stays on the alternate that failed when the rest are full", () => {
      const second = [failed(0, "cold"), committed, failed(1, "cold"), skipped];
      expect(stepped(second).effects).toEqual([{ kind: "hop", from: 1, to: 4, reason: "cold", result: "failed" }]);
      expect(stepped([...second, committed, failed(4, "cold")]).effects).toMatchObject([{ kind: "commit-error" }]);
    });

    test("repeats no host when three hosts failed", () => {
      const events = [failed(0, "cold"), committed, failed(1, "cold"), committed, failed(2, "cold")];
      expect(stepped(events).effects).toMatchObject([{ kind: "commit-error", selection: 2 }]);
    });
  });

  test("names every attempt and its reason when all hosts are used up", () => {
    const step = lastOf([
      failed(0, "disk full."),
      { kind: "hop-skipped", why: "no room (VCPU: 8 asked, 2 free)" },
      { kind: "hop-committed" },
      failed(2, "timed out\n after 600 s"),
    ]);
    expect(step.effects).toEqual([
      {
        kind: "commit-error",
        selection: 2,
        attemptReason: "timed out\n after 600 s",
        message:
          "No valid host: exhausted all hosts of the build. 2 attempts on 2 hosts failed, and no alternate is left: " +
          "host-a: disk full; host-b: not tried, no room (VCPU: 8 asked, 2 free); host-c: timed out after 600 s",
      },
    ]);
  });

  test("says that the limit of attempts was reached, and which hosts it left untried", () => {
    const limited = { hosts: [...plan.hosts, "host-d", "host-d", "host-e"], attemptsMax: 2 };
    const events = [failed(0, "disk full"), { kind: "hop-committed" } as const, failed(1, "no power")];
    const step = events.reduce((last, event) => stepBuild(limited, last.state, event), beginBuild(0, []));
    const message =
      "No valid host: exceeded maximum number of retries. 2 attempts on 2 hosts failed, and a build makes no more: " +
      "host-a: disk full; host-b: no power; host-c: left untried; host-d: left untried; host-e: left untried";
    expect(step.effects).toMatchObject([{ kind: "commit-error", message }]);
    expect(nextStepAfter(message, "uuid-1")).toMatch(/berth explain uuid-1.*create it again.*--max-attempts/);
    expect(nextStepAfter("No valid host was found. There are no hosts.", "uuid-1")).toBeNull();
  });

  test("ends at once, without a retry, when no host could build it", () => {
    const step = lastOf([
      failed(0, "disk full"),
      { kind: "hop-committed" },
      failed(1, "the image is corrupt", "abort"),
    ]);
    expect(step.effects).toMatchObject([
      {
        kind: "commit-error",
        message:
          "Build failed on host-b: the image is corrupt. No other host was tried, because none could build it. Tried before: host-a: disk full.",
      },
    ]);
    const end = stepBuild(plan, step.state, { kind: "error-committed" });
    expect(end.effects.map((effect) => effect.kind)).toEqual(["destroy-guest", "tell-error"]);
  });

  test("calls the host again when it comes back, and only while it waits for it", () => {
    const back: BuildEvent = { kind: "host-connected", selection: 0 };
    expect(lastOf([back]).effects).toEqual([{ kind: "call-host", selection: 0 }]);
    expect(lastOf([{ kind: "prepared", selection: 0 }, back]).effects).toEqual([]);
  });

  test("resumes at the position and with the attempts that the database has", () => {
    const past = [{ selection: 0, host: "host-a", result: "failed", reason: "disk full" }] as const;
    const [first, second] = run([failed(2, "no power")], beginBuild(2, past));
    expect(first!.effects).toEqual([{ kind: "call-host", selection: 2 }]);
    expect(second!.effects).toMatchObject([
      {
        kind: "commit-error",
        message: expect.stringMatching(/^No valid host: .* host-a: disk full; host-c: no power$/),
      },
    ]);
  });

  test("ends in ERROR and destroys its guest when the commit is refused, without trying another host", () => {
    const prepared: BuildEvent = { kind: "prepared", selection: 0 };
    const refused: BuildEvent = { kind: "active-refused", reason: "another guest may run" };
    const steps = run([prepared, refused, { kind: "error-committed" }]);
    const message = "Built on host-a but not started: another guest may run.";
    expect(steps.slice(2).map(({ effects }) => effects)).toEqual([
      [{ kind: "commit-error", selection: 0, attemptReason: "another guest may run", message }],
      [
        { kind: "destroy-guest", selection: 0 },
        { kind: "tell-error", selection: 0, message },
      ],
    ]);
    expect(lastOf([refused])).toMatchObject({ state: { kind: "preparing" }, effects: [] });
  });

  test("leaves the guest to the task's new owner when it is fenced", () => {
    expect(lastOf([{ kind: "prepared", selection: 0 }, { kind: "fenced" }])).toEqual({
      state: { kind: "ended", as: "fenced" },
      effects: [{ kind: "settle-guest", selection: 0 }],
    });
  });
});

// --- properties: a hostile environment answers the machine, in any order, with repeats and stale messages --------------

const hostCount = fc.integer({ min: 1, max: 6 });
const answers = fc.infiniteStream(fc.nat({ max: 99 }));

/** The environment's answer to an effect. Null when there is none (the effect only reports, or needs no answer). */
function answerTo(effect: BuildEffect, dice: number): BuildEvent | null {
  switch (effect.kind) {
    case "call-host":
      if (dice < 40) return { kind: "prepared", selection: effect.selection };
      if (dice < 55) return { kind: "uncalled", selection: effect.selection, reason: `away ${dice}` };
      return failed(effect.selection, `reason ${dice}`, dice < 90 ? "reschedule" : "abort");
    case "commit-active":
      if (dice >= 95) return { kind: "fenced" };
      return dice < 90 ? { kind: "active-committed" } : { kind: "active-refused", reason: `reason ${dice}` };
    case "hop":
      if (dice >= 95) return { kind: "fenced" };
      return dice < 50 ? { kind: "hop-committed" } : { kind: "hop-skipped", why: "no room" };
    case "commit-error":
      return dice < 95 ? { kind: "error-committed" } : { kind: "fenced" };
    default:
      return null;
  }
}

function noise(dice: number): BuildEvent {
  const selection = dice % 7;
  if (dice % 3 === 0) return { kind: "host-connected", selection };
  return dice % 3 === 1 ? { kind: "prepared", selection: selection + 100 } : failed(selection + 100, "stale");
}

interface World {
  readonly states: BuildState[];
  readonly effects: BuildEffect[];
}

/** Answers each effect, some of them twice, with stale messages in between. */
function play(hosts: readonly string[], dice: Iterator<number>, attemptsMax = 0): World {
  const roll = () => dice.next().value as number;
  const world: World = { states: [], effects: [] };
  const queue: BuildEvent[] = [];
  const take = (step: BuildStep) => {
    world.states.push(step.state);
    world.effects.push(...step.effects);
    for (const effect of step.effects) {
      const answer = answerTo(effect, roll());
      if (answer === null) continue;
      if (roll() < 30) queue.push(noise(roll()));
      queue.push(answer);
      if (roll() < 30 && ["prepared", "failed", "uncalled"].includes(answer.kind)) queue.push(answer);
    }
  };
  take(beginBuild(0, []));
  for (let turn = 0; queue.length > 0; turn += 1) {
    if (turn > 1_000) throw new Error("the build does not end");
    take(stepBuild({ hosts, attemptsMax }, world.states.at(-1)!, queue.shift()!));
  }
  return world;
}

function property(check: (world: World, hosts: readonly string[]) => void): void {
  fc.assert(
    fc.property(hostCount, answers, (count, dice) => {
      const hosts = Array.from({ length: count }, (_, index) => `host-${index}`);
      check(play(hosts, dice[Symbol.iterator]()), hosts);
    }),
    { numRuns: 500 },
  );
}

describe("whatever answers it gets", () => {
  test("a build ends", () => {
    property((world) => expect(world.states.at(-1)!.kind).toBe("ended"));
  });

  test("starts at most one guest, the committed one, and never destroys it", () => {
    property((world) => {
      const started = new Set(
        world.effects.filter((effect) => effect.kind === "start-guest").map((effect) => effect.selection),
      );
      const committed = world.effects
        .filter((effect) => effect.kind === "commit-active")
        .map((effect) => effect.selection);
      expect(started.size).toBeLessThanOrEqual(1);
      for (const selection of started) {
        expect(committed).toContain(selection);
        expect(world.effects).not.toContainEqual({ kind: "destroy-guest", selection });
      }
    });
  });

  test("destroys or settles the guest on every called host except the home", () => {
    property((world) => {
      const of = (kind: "call-host" | "start-guest" | "destroy-guest" | "settle-guest") =>
        new Set(world.effects.flatMap((effect) => (effect.kind === kind ? [effect.selection] : [])));
      const cared = [of("start-guest"), of("destroy-guest"), of("settle-guest")];
      for (const selection of of("call-host")) expect(cared.some((set) => set.has(selection))).toBe(true);
    });
  });

  test("calls hosts in the order of the plan, and none again after leaving it", () => {
    property((world) => {
      const called = world.effects.filter((effect) => effect.kind === "call-host").map((effect) => effect.selection);
      expect(called).toEqual([...called].sort((a, b) => a - b));
    });
  });

  test("lets at most max_attempts hosts fail, and skips any number of hosts", () => {
    fc.assert(
      fc.property(hostCount, fc.integer({ min: 1, max: 4 }), answers, (count, attemptsMax, dice) => {
        const hosts = Array.from({ length: count }, (_, index) => `host-${index}`);
        const { effects } = play(hosts, dice[Symbol.iterator](), attemptsMax);
        const hops = effects.filter((effect) => effect.kind === "hop" && effect.result === "failed");
        expect(new Set(hops.map((effect) => effect.kind === "hop" && effect.from)).size).toBeLessThan(attemptsMax);
      }),
      { numRuns: 500 },
    );
  });

  test("an error names every host that was called", () => {
    property((world, hosts) => {
      const called = world.effects
        .filter((effect) => effect.kind === "call-host")
        .map((effect) => hosts[effect.selection]!);
      for (const effect of world.effects) {
        if (effect.kind === "tell-error") for (const host of called) expect(effect.message).toContain(host);
      }
    });
  });
});
