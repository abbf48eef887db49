import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import type { ChaosCloud, Part } from "../chaos-cloud.ts";
import { failingBuilds, faults, type Nemesis, type NemesisStage, repeatedly, together } from "./nemesis.ts";

/** A part that needs two tries to start. */
class TwoTries implements Part {
  readonly role = "conductor";
  readonly cell = "cell1";
  readonly name: string;
  running = true;
  kills = 0;
  #tries = 0;

  constructor(name: string) {
    this.name = name;
  }

  async kill(): Promise<void> {
    this.running = false;
    this.kills += 1;
    this.#tries = 0;
  }

  async start(): Promise<void> {
    this.#tries += 1;
    if (this.#tries < 2) throw new Error("not yet");
    this.running = true;
  }

  async pause(): Promise<void> {}
  async resume(): Promise<void> {}
}

/** Runs a nemesis until `isEnough`, then ends the load. Resolves with the nemesis' notes when it has ended. */
async function work(nemesis: Nemesis<ChaosCloud>, parts: readonly Part[], isEnough: () => boolean) {
  const over = new AbortController();
  const noted: string[] = [];
  const shares: number[] = [];
  const stage: NemesisStage<ChaosCloud> = {
    cloud: { parts, links: [] } as unknown as ChaosCloud,
    random: () => 0,
    signal: over.signal,
    pause: (ms) => delay(ms, undefined, { signal: over.signal }).catch(() => undefined),
    failBuilds: (share) => shares.push(share),
    async fault({ fault, target }, during) {
      noted.push(`${fault} ${target} begins`);
      await during();
      noted.push(`${fault} ${target} ends`);
    },
  };
  const done = nemesis(stage);
  while (!isEnough()) await delay(1);
  over.abort();
  await done;
  return { noted, shares };
}

test("a part that is killed is started again when the load ends during the fault", async () => {
  const part = new TwoTries("cell1-conductor-1");
  const nemesis = faults([{ fault: "kill", target: "conductor", at: "0ms", for: "1m" }], { overMs: 60_000 });
  const { noted } = await work(nemesis, [part], () => part.kills > 0);
  expect(part.running).toBe(true);
  expect(noted).toEqual(["kill cell1-conductor-1 begins", "kill cell1-conductor-1 ends"]);
});

test("no fault begins after the load has ended", async () => {
  const part = new TwoTries("cell1-conductor-1");
  const nemesis = faults([{ fault: "kill", target: "conductor", at: "1m" }], { overMs: 120_000 });
  const { noted } = await work(nemesis, [part], () => true);
  expect([part.kills, noted]).toEqual([0, []]);
});

test("several nemeses work at the same time, repeatedly", async () => {
  const part = new TwoTries("cell1-conductor-1");
  let times = 0;
  const own = repeatedly<ChaosCloud>(1, (stage) =>
    stage.fault({ fault: "own", target: "a switch" }, async () => {
      times += 1;
    }),
  );
  const { noted, shares } = await work(together(own, failingBuilds(0.3)), [part], () => times >= 3);
  expect(shares).toEqual([0.3, 0]);
  expect(noted.filter((line) => line === "own a switch begins").length).toBe(times);
});

test("a fault that no plan could have is refused before anything begins", () => {
  expect(() => faults([{ fault: "kill", at: "1s" }], { overMs: 1_000 })).toThrow("target");
});
