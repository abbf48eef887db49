import { expect, test } from "vitest";
import { seededRandom } from "../../core/scheduling/seeded-random.ts";
import {
  createBody,
  creates,
  deletes,
  faking,
  forTime,
  type Generator,
  inTurn,
  limit,
  lists,
  mix,
  pausing,
  shows,
} from "./generators.ts";

/** Lists the requests of one client until it is done or has sent `most` of them. */
function follow(generator: Generator, { most = 1_000, servers = ["a", "b"], atMs = (n: number) => n } = {}) {
  const random = seededRandom(1);
  const done: string[] = [];
  for (let n = 0; n < most; n += 1) {
    const next = generator.next({ client: 0, atMs: atMs(n), random, servers });
    if (next === null) return done;
    done.push("op" in next ? next.op : "wait");
  }
  return done;
}

const count = (done: readonly string[], word: string) => done.filter((one) => one === word).length;

test("a limit counts requests but not pauses", () => {
  const done = follow(limit(10, pausing(5, creates())));
  expect(count(done, "create")).toBe(10);
  expect(count(done, "wait")).toBeGreaterThanOrEqual(10);
});

test("a mix picks generators by their weights, and continues with those that are not done", () => {
  const done = follow(limit(400, mix([3, creates()], [1, lists()])));
  expect(count(done, "create") / count(done, "list")).toBeGreaterThan(2);
  expect(count(done, "create") / count(done, "list")).toBeLessThan(4);
  const rest = follow(mix([1, limit(3, creates())], [1, limit(20, lists())]));
  expect([count(rest, "create"), count(rest, "list")]).toEqual([3, 20]);
});

test("generators in turn follow each other, and a time limit ends one", () => {
  expect(follow(inTurn(limit(2, creates()), limit(1, lists()), limit(1, shows())))).toEqual([
    "create",
    "create",
    "list",
    "show",
  ]);
  expect(follow(forTime(5, creates()))).toHaveLength(5);
});

test("deletes and shows no server while there are none", () => {
  expect(follow(deletes(), { most: 1, servers: [] })).toEqual(["wait"]);
  expect(deletes().next({ client: 0, atMs: 0, random: () => 0.6, servers: ["a", "b"] })).toEqual({
    op: "delete",
    server: "b",
  });
});

test("a script applies to its share of the creates, and a server's own script takes precedence", () => {
  const script = { outcome: "hang" } as const;
  const wanted = (generator: Generator) =>
    Array.from({ length: 400 }, () => generator.next({ client: 0, atMs: 0, random, servers: [] })).flatMap((next) =>
      next !== null && "op" in next && next.op === "create" ? [next.server.fake] : [],
    );
  const random = seededRandom(2);
  const share = wanted(faking(script, creates(), 0.25)).filter((fake) => fake === script).length / 400;
  expect(share).toBeGreaterThan(0.15);
  expect(share).toBeLessThan(0.35);
  const own = { outcome: "abort" } as const;
  expect(
    wanted(
      faking(
        script,
        creates(() => ({ fake: own })),
      ),
    )[0],
  ).toBe(own);
});

test("a create asks for the wanted properties, or for the smallest server when there are none", () => {
  expect(createBody("n", {}, "small")).toEqual({
    server: { name: "n", flavorRef: "small", imageRef: "", networks: "none", metadata: {} },
  });
  const full = createBody("n", { flavor: "f", zone: "z", hints: { group: "g" }, fake: { outcome: "hang" } }, "small");
  expect(full).toMatchObject({
    server: { flavorRef: "f", availability_zone: "z", metadata: { "berth:fake": '{"outcome":"hang"}' } },
    "os:scheduler_hints": { group: "g" },
  });
});
