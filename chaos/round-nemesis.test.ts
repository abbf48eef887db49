import { describe, expect, test } from "vitest";
import { eventually } from "../test/rigs/eventually.ts";
import { CannotHarmError, type ChaosCloud, type Link, type Part } from "./chaos-cloud.ts";
import { ChaosHistory } from "./chaos-history.ts";
import { parsePlan } from "./read-plan.ts";
import { RoundNemesis } from "./round-nemesis.ts";
import { scheduleOf } from "./schedule.ts";

/** A fake cloud that records all calls. */
function notedCloud() {
  const deeds: string[] = [];
  const partOf = (name: string, role: Part["role"], cell: string | null): Part => {
    let running = true;
    const note = (what: string, runs: boolean) => async () => {
      running = runs;
      deeds.push(`${what} ${name}`);
    };
    return {
      ...{ name, role, cell },
      get running() {
        return running;
      },
      kill: note("kill", false),
      start: note("start", true),
      pause: note("pause", true),
      resume: note("resume", true),
    };
  };
  const parts = [
    partOf("api-1", "api", null),
    partOf("cell1-conductor-1", "conductor", "cell1"),
    partOf("cell1-conductor-2", "conductor", "cell1"),
    partOf("cell2-conductor-1", "conductor", "cell2"),
  ];
  const links = ["cell1", "cell2"].map(
    (cell): Link => ({
      from: { name: "above", role: "above", cell: null },
      to: { name: `${cell}-nats`, role: "nats", cell },
      cut: async (way) => void deeds.push(`cut ${cell} ${way}`),
      slow: async (ms) => {
        if (cell === "cell2") throw new CannotHarmError("not here");
        deeds.push(`slow ${cell} ${ms}`);
      },
      heal: async () => void deeds.push(`heal ${cell}`),
    }),
  );
  const cloud: ChaosCloud = {
    ...{ target: "local", cells: ["cell1", "cell2"], parts, links, apiUrls: [] },
    flushRedis: async () => void deeds.push("flush"),
    failover: async (cell) => void deeds.push(`failover ${cell}`),
    restoreStandby: async (cell) => void deeds.push(`restore ${cell}`),
    fillDisk: async (agent) => void deeds.push(`fill ${agent}`),
    freeDisk: async (agent) => void deeds.push(`free ${agent}`),
    makeWhole: async () => {},
    audit: async () => {
      throw new Error("not asked for here");
    },
    holders: async () => null,
    deaths: () => [],
    logs: async () => [],
    close: async () => {},
  };
  return { cloud, deeds };
}

function begin(nemesisText: string, random: () => number = () => 0) {
  const { cloud, deeds } = notedCloud();
  const history = new ChaosHistory();
  const plan = parsePlan(
    `{ name: p, about: a, duration: 9s, load: { clients: 1 }, nemesis: [${nemesisText}] }`,
    "test",
  );
  let faultId = 0;
  const nextFaultId = () => {
    faultId += 1;
    return faultId;
  };
  const nemesis = new RoundNemesis({ cloud, history, random, signal: new AbortController().signal, nextFaultId });
  nemesis.begin(scheduleOf(plan.rounds[0]?.nemesis ?? [], 9_000));
  const told = () =>
    history.lines().map((line) => (line.who === "nemesis" && "target" in line ? `${line.what} ${line.target}` : ""));
  return { nemesis, deeds, history, told, cloud };
}

test("carries out the plan, undoes each fault, and records both", async () => {
  const { nemesis, deeds, told } = begin("{ fault: kill, target: conductor@cell1, pick: all, at: 0s, for: 10ms }");
  await eventually("the end", () => nemesis.done);
  expect(deeds).toEqual([
    "kill cell1-conductor-1",
    "kill cell1-conductor-2",
    "start cell1-conductor-1",
    "start cell1-conductor-2",
  ]);
  expect(told()).toEqual([
    "fault-begins cell1-conductor-1, cell1-conductor-2",
    "fault-ends cell1-conductor-1, cell1-conductor-2",
  ]);
});

test("picks at random among the running parts", async () => {
  const { nemesis, deeds } = begin(
    "{ fault: kill, target: conductor, at: 0s, for: 9s }, { fault: kill, target: conductor, at: 5ms, for: 9s }",
  );
  await eventually("two deaths", () => deeds.length === 2);
  expect(deeds).toEqual(["kill cell1-conductor-1", "kill cell1-conductor-2"]);
  await nemesis.stop();
});

test("when stopped, it ends the faults that last and begins no others", async () => {
  const { nemesis, deeds } = begin(
    "{ fault: cut, target: above -> cell1, at: 0s, for: 9s }, { fault: kill-all, at: 8s }",
  );
  await eventually("the cut", () => deeds.length === 1);
  await nemesis.stop();
  expect(nemesis.done).toBe(true);
  expect(deeds).toEqual(["cut cell1 both", "heal cell1"]);
});

test("harm that the target cannot do is skipped, and the history says so", async () => {
  const { nemesis, history } = begin("{ fault: slow, target: above -> cell2, delay: 1s, at: 0s, for: 1s }");
  await eventually("the end", () => nemesis.done);
  await nemesis.stop();
  expect(history.lines().at(-1)).toMatchObject({ what: "fault-ends", detail: "skipped: not here" });
});

describe("faults that overlap on one target", () => {
  const done = async (nemesisText: string) => {
    const { nemesis, deeds } = begin(nemesisText);
    await eventually("the end", () => nemesis.done);
    return deeds;
  };

  test("a part stays paused until the last of them ends", async () => {
    const pause = (atMs: number, forMs: number) => `{ fault: pause, target: api, at: ${atMs}ms, for: ${forMs}ms }`;
    expect(await done(`${pause(0, 60)}, ${pause(10, 200)}`)).toEqual(["pause api-1", "pause api-1", "resume api-1"]);
  });

  test("a link that is cut one way, cut the other way, and slowed becomes whole step by step", async () => {
    const cut = (way: string, atMs: number, forMs: number) =>
      `{ fault: cut, target: above -> cell1, way: ${way}, at: ${atMs}ms, for: ${forMs}ms }`;
    const slow = (delay: string, atMs: number, forMs: number) =>
      `{ fault: slow, target: above -> cell1, delay: ${delay}, at: ${atMs}ms, for: ${forMs}ms }`;
    expect(await done(`${cut("there", 0, 100)}, ${cut("back", 50, 150)}`)).toEqual([
      "cut cell1 there",
      "cut cell1 both",
      "cut cell1 back",
      "heal cell1",
    ]);
    expect(await done(`${cut("both", 0, 100)}, ${slow("1s", 50, 150)}`)).toEqual([
      "cut cell1 both",
      ...["cut cell1 both", "slow cell1 1000"],
      ...["heal cell1", "slow cell1 1000"],
      "heal cell1",
    ]);
    expect(await done(`${slow("1s", 0, 100)}, ${cut("both", 50, 150)}`)).toEqual([
      "slow cell1 1000",
      ...["cut cell1 both", "slow cell1 1000"],
      "slow cell1 0",
      "heal cell1",
    ]);
  });

  test("when one of several faults ends, builds fail at the rate of the others", async () => {
    const { nemesis } = begin(
      "{ fault: fail-builds, share: 0.3, at: 0s, for: 9s }, { fault: fail-builds, share: 0.5, at: 20ms, for: 50ms }",
    );
    // The higher rate lasts for a moment only, which a look at the present rate may miss.
    const rates: number[] = [nemesis.failShare];
    const keep = { get: () => rates.at(-1), set: (rate: number) => void rates.push(rate) };
    Object.defineProperty(nemesis, "failShare", keep);
    await eventually("the lower rate again", () => rates.includes(0.5) && rates.at(-1) === 0.3);
    await nemesis.stop();
    expect(rates.filter((rate, at) => rate !== rates[at - 1]).slice(-4)).toEqual([0.3, 0.5, 0.3, 0]);
  });
});

test("harm that fails half-way is undone all the same, and stops the run", async () => {
  const { nemesis, deeds, cloud } = begin("{ fault: pause, target: conductor@cell1, pick: all, at: 0s, for: 9s }");
  const pause = async () => {
    throw new Error("no such process");
  };
  Object.assign(cloud.parts[2] as object, { pause });
  await eventually("the end", () => nemesis.done);
  await expect(nemesis.stop()).rejects.toThrow("no such process");
  expect(deeds).toEqual(["pause cell1-conductor-1", "resume cell1-conductor-1", "resume cell1-conductor-2"]);
});

test("builds fail at a rate as long as the fault lasts", async () => {
  const { nemesis } = begin("{ fault: fail-builds, share: 0.3, at: 0s, for: 9s }");
  await eventually("the rate", () => nemesis.failShare === 0.3);
  await nemesis.stop();
  expect(nemesis.failShare).toBe(0);
});

test("a run that is broken off does not wait until killed parts serve again", async () => {
  const { cloud } = notedCloud();
  const [api] = cloud.parts;
  Object.assign(api as object, { start: () => new Promise(() => undefined) });
  const history = new ChaosHistory();
  const text =
    "{ name: p, about: a, duration: 9s, load: { clients: 1 }, nemesis: [{ fault: kill, target: api, at: 0s }] }";
  const plan = parsePlan(text, "test");
  const ending = new AbortController();
  const nemesis = new RoundNemesis({ cloud, history, random: () => 0, signal: ending.signal, nextFaultId: () => 1 });
  nemesis.begin(scheduleOf(plan.rounds[0]?.nemesis ?? [], 9_000));
  await eventually("the death", () => api?.running === false);
  ending.abort(new Error("interrupted"));
  await nemesis.stop();
  expect(history.lines().map(({ what }) => what)).toEqual(["fault-begins", "fault-ends"]);
});
