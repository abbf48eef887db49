import { afterEach, describe, expect, test } from "vitest";
import type { SoftState } from "../../core/stores/soft-state.ts";
import { eventually } from "../rigs/eventually.ts";

export interface SoftStateSubject {
  /** A scheduler's access to a store that all accesses of one subject share. */
  connect(options: { readonly fadeMs: number }): SoftState;
  /** Forgets everything. */
  reset(): Promise<void>;
}

const longMs = 60_000;

/** The guarantees of both implementations of the soft state. */
export function softStateContract(name: string, subject: () => SoftStateSubject): void {
  describe(`the soft state in ${name}`, () => {
    const open: SoftState[] = [];
    const connect = (options = { fadeMs: longMs }) => {
      const state = subject().connect(options);
      open.push(state);
      return state;
    };
    afterEach(async () => {
      await Promise.all(open.splice(0).map((state) => state.close()));
      await subject().reset();
    });

    test("tells a scheduler of all live ones, sorted, itself included", async () => {
      const [one, two] = [connect(), connect()];
      expect(await one.announce("s2", longMs)).toEqual(["s2"]);
      expect(await two.announce("s1", longMs)).toEqual(["s1", "s2"]);
      expect(await one.announce("s2", longMs)).toEqual(["s1", "s2"]);
      expect(await one.living()).toEqual(["s1", "s2"]);
    });

    test("forgets a scheduler that has not announced itself within its time to live", async () => {
      const state = connect();
      await state.announce("dead", 100);
      expect(await state.announce("alive", longMs)).toContain("alive");
      await eventually("the dead one's end", async () => !(await state.announce("alive", longMs)).includes("dead"));
      expect(await state.announce("alive", longMs)).toEqual(["alive"]);
    });

    test("keeps the other schedulers when the one with the longest time to live leaves", async () => {
      const state = connect();
      await state.announce("a", longMs);
      await state.announce("b", 30_000);
      await state.withdraw("a");
      await state.withdraw("never announced");
      expect(await state.announce("c", 100)).toEqual(["b", "c"]);
    });

    test("keeps the last figures of each scheduler until their time is over or the scheduler leaves", async () => {
      const [one, two] = [connect(), connect()];
      const figures = { at: 1, placed: 2, refused: 3, racesLost: 4, taken: 5, queuedMs: 6.5 };
      await one.recordFigures("a", { ...figures, placed: 1 }, longMs);
      await one.recordFigures("a", figures, longMs);
      await two.recordFigures("b", figures, longMs);
      await two.recordFigures("dead", figures, 100);
      expect(await two.figuresOf(["a", "b", "nobody"])).toEqual(
        new Map([
          ["a", figures],
          ["b", figures],
        ]),
      );
      await one.withdraw("b");
      expect([...(await one.figuresOf(["a", "b"])).keys()]).toEqual(["a"]);
      await eventually("the end of old figures", async () => (await one.figuresOf(["dead"])).size === 0);
      expect(await one.figuresOf([])).toEqual(new Map());
    });

    test("counts build failures of a host of a cell until a build succeeds there", async () => {
      // So long that nothing fades while a busy machine lets the test wait.
      const slow = { fadeMs: 86_400_000 };
      const [one, two] = [connect(slow), connect(slow)];
      expect(await one.buildFailures()).toEqual(new Map());
      await Promise.all([
        one.recordBuildFailure("c1", "h1"),
        two.recordBuildFailure("c1", "h1"),
        two.recordBuildFailure("c2", "h1"),
        one.recordBuildFailure("c1", "h/2"),
      ]);
      const counted = new Map([
        ["c1/h1", 2],
        ["c2/h1", 1],
        ["c1/h/2", 1],
      ]);
      expect(await two.buildFailures()).toEqual(counted);
      await two.clearBuildFailures("c1", "h1");
      await two.clearBuildFailures("c1", "never failed");
      counted.delete("c1/h1");
      expect(await one.buildFailures()).toEqual(counted);
      await one.recordBuildFailure("c1", "h1");
      expect((await two.buildFailures()).get("c1/h1")).toBe(1);
    });

    test("shows the hosts that other schedulers have just picked, each once for each scheduler, until they fade", async () => {
      const [one, two] = [connect(), connect()];
      expect(await one.recentPicks("s1")).toEqual([]);
      const pick = { cell: "c1", host: "h/1" };
      await one.recordPicks("s1", [pick, pick, { cell: "c2", host: "h2" }]);
      await one.recordPicks("s1", []);
      await two.recordPicks("s2", [pick]);
      expect(await one.recentPicks("s1")).toEqual([pick]);
      expect((await two.recentPicks("s2")).toSorted((a, b) => (a.cell < b.cell ? -1 : 1))).toEqual([
        pick,
        { cell: "c2", host: "h2" },
      ]);
      expect(await two.recentPicks("s3")).toHaveLength(3);
      await eventually("the picks' end", async () => (await two.recentPicks("s2")).length === 0);
    });

    test("lets a count fade when no failure was added for a while, and then starts again", async () => {
      const state = connect({ fadeMs: 150 });
      await state.recordBuildFailure("c1", "old");
      await state.recordBuildFailure("c1", "old");
      await eventually("the count's end", async () => !(await state.buildFailures()).has("c1/old"));
      await state.recordBuildFailure("c1", "old");
      expect((await state.buildFailures()).get("c1/old") ?? 0).toBeLessThanOrEqual(1);
    });

    test("keeps a count to which failures are added while another one fades", async () => {
      const state = connect({ fadeMs: 1_500 });
      await state.recordBuildFailure("c1", "quiet");
      let added = 0;
      await eventually("the quiet one's end", async () => {
        await state.recordBuildFailure("c1", "noisy");
        added += 1;
        return !(await state.buildFailures()).has("c1/quiet");
      });
      const noisy = (await state.buildFailures()).get("c1/noisy") ?? 0;
      expect(noisy).toBeGreaterThan(0);
      expect(noisy).toBeLessThanOrEqual(added);
    });

    test("lets a failure count less and less before it is forgotten", async () => {
      const state = connect({ fadeMs: 2_000 });
      for (let failures = 0; failures < 8; failures += 1) await state.recordBuildFailure("c1", "h1");
      const seen: number[] = [];
      await eventually("the count's end", async () => {
        const count = (await state.buildFailures()).get("c1/h1");
        if (count !== undefined) seen.push(count);
        return count === undefined;
      });
      expect(seen).toEqual([...seen].sort((a, b) => b - a));
      expect(seen.some((count) => count > 0.5 && count < 4)).toBe(true);
    });

    test("keeps the newest findings about the laws until their time is over", async () => {
      const [one, two] = [connect(), connect()];
      expect(await one.laws()).toBeNull();
      await one.recordLaws({ at: 1, broken: [], unchecked: [4, 6] }, longMs);
      expect(await two.laws()).toEqual({ at: 1, broken: [], unchecked: [4, 6] });
      const broken = [{ law: 2, subject: "cell north", evidence: "an allocation of nobody" }];
      await two.recordLaws({ at: 2, broken, unchecked: [] }, longMs);
      expect(await one.laws()).toEqual({ at: 2, broken, unchecked: [] });
      await two.recordLaws({ at: 3, broken: [], unchecked: [] }, 150);
      await eventually("the end of their time", async () => (await one.laws()) === null);
    });

    test("answers neutrally after close", async () => {
      const state = connect();
      await state.close();
      await state.close();
      await state.withdraw("s1");
      await state.recordBuildFailure("c1", "h1");
      await state.recordLaws({ at: 1, broken: [], unchecked: [] }, longMs);
      expect(await state.announce("s1", longMs)).toEqual(["s1"]);
    });
  });
}
