import { describe, expect, it } from "vitest";
import { chooseAlternates, type StandbyHosts } from "./choose-alternates.ts";

interface Standby {
  readonly weight?: number;
  readonly ways?: number;
  /** The request fits on the host just once. */
  readonly tight?: boolean;
}

/** The host at position `at` has the root 100 + at. */
function standby(hosts: readonly Standby[]): StandbyHosts {
  return {
    count: hosts.length,
    root: (at) => 100 + at,
    weight: (root) => hosts[root - 100]?.weight ?? 0,
    room: (root) => (hosts[root - 100]?.tight ? 1 : 4),
    waysOn: (root, most) =>
      Array.from({ length: Math.min(most, hosts[root - 100]?.ways ?? 1) }, (_, way) => ({
        items: [],
        mappings: { "": `${root - 100}.${way}` },
      })),
  };
}
const alike = (count: number) => standby(Array.from({ length: count }, () => ({})));
const positions = (...args: Parameters<typeof chooseAlternates>) =>
  chooseAlternates(...args).map(({ root }) => root - 100);

describe("chooseAlternates", () => {
  it("gives the best of a few hosts, best first, and none that is taken", () => {
    const hosts = standby([{ weight: 1 }, { weight: 4 }, { weight: 2 }, { weight: 3 }]);
    expect(positions(hosts, { most: 2, seed: 1, taken: new Set([101]) })).toEqual([3, 2]);
    expect(positions(hosts, { most: 9, seed: 1, taken: new Set([101]) })).toEqual([3, 2, 0]);
    expect(positions(hosts, { most: 0, seed: 1, taken: new Set([101]) })).toEqual([]);
  });

  it("never gives a host that was chosen for a server of the same request", () => {
    const taken = new Set(Array.from({ length: 190 }, (_, at) => 100 + at));
    for (let seed = 0; seed < 50; seed += 1) {
      const given = positions(alike(200), { most: 5, seed, taken });
      expect(given).toHaveLength(5);
      for (const at of given) expect(at).toBeGreaterThanOrEqual(190);
    }
  });

  it("does not let a hundred builds share two alternates, even on ten hosts", () => {
    const hosts = standby(Array.from({ length: 10 }, (_, at) => ({ weight: at })));
    const given = Array.from({ length: 100 }, (_, index) =>
      positions(hosts, { most: 2, seed: (index * 2654435761) >>> 0, taken: new Set([109]) }),
    );
    expect(new Set(given.flat()).size).toBeGreaterThan(5);
    const most = Math.max(...[...Map.groupBy(given.flat(), (at) => at).values()].map((uses) => uses.length));
    expect(most).toBeLessThan(80);
  });

  it("prefers failure domains that the server does not use yet, and the chosen host's domain last of all", () => {
    const hosts = standby(Array.from({ length: 12 }, (_, at) => ({ weight: 12 - at })));
    const domainOf = (root: number) => (root < 106 ? "rack-a" : root < 109 ? "rack-b" : "rack-c");
    const given = positions(hosts, { most: 2, seed: 3, taken: new Set([100]), domainOf });
    expect(given.map((at) => domainOf(100 + at))).toEqual(["rack-b", "rack-c"]);
    const all = positions(hosts, { most: 11, seed: 3, taken: new Set([100]), domainOf });
    expect(all).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]);
  });

  it("prefers hosts with room to spare, and among them the best first", () => {
    expect(
      positions(standby([{}, { tight: true, weight: 9 }, { weight: 1 }, { weight: 2 }]), {
        most: 2,
        seed: 3,
        taken: new Set([100]),
      }),
    ).toEqual([3, 2]);
    const few = [{}, { tight: true, weight: 9 }, { weight: 1 }, { tight: true, weight: 2 }];
    expect(positions(standby(few), { most: 2, seed: 3, taken: new Set([100]) })).toEqual([1, 2]);
  });

  it("goes to another failure domain even if it is tight there", () => {
    const hosts = standby([{}, { weight: 2 }, { weight: 1, tight: true }]);
    const domainOf = (root: number) => (root === 102 ? "rack-b" : "rack-a");
    expect(positions(hosts, { most: 1, seed: 3, taken: new Set([100]), domainOf })).toEqual([2]);
  });

  it("gives a few of the ways in which a server fits on a host, and skips hosts without any", () => {
    const hosts = standby([{}, { weight: 3, ways: 0 }, { weight: 2, ways: 8 }, { weight: 1, ways: 2 }]);
    const given = chooseAlternates(hosts, { most: 2, seed: 1, taken: new Set([100]) });
    expect(given.map(({ root, ways }) => [root - 100, ways.map((way) => way.mappings[""])])).toEqual([
      [2, ["2.0", "2.1"]],
      [3, ["3.0", "3.1"]],
    ]);
  });

  it("looks beyond the drawn hosts when they do not fit", () => {
    const hosts = standby(Array.from({ length: 200 }, (_, at) => ({ ways: at % 50 === 7 ? 1 : 0 })));
    expect(positions(hosts, { most: 2, seed: 11, taken: new Set([100]) })).toHaveLength(2);
  });
});
