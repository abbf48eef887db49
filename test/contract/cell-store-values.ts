import { describe, expect, test } from "vitest";
import { type AttributeQuery, newestFirst } from "../../core/stores/cell/listed-servers.ts";
import fc from "../rigs/property.ts";
import { deleteTask, dispatchOf, serverId } from "./cell-fixtures.ts";
import { type CellUnderTest, HOST_VCPUS, tenureOf } from "./cell-under-test.ts";

/** Lists of servers that have one of several values. */
export function listedValuesContract(cell: () => CellUnderTest): void {
  describe("the values of an attribute", () => {
    test("are the same as those of the servers, whenever they are asked for", async () => {
      const { store } = cell();
      const living = new Map<number, string>();
      const text = fc.constantFrom("a", "b", "ab", "x", "\u{10ffff}");
      const boot = fc.record({ boot: fc.constantFrom("a", "ab", "b", "ba", "bab", "c", "\u{10ffff}") });
      const end = fc.record({ end: fc.nat() });
      const ask = fc.record({ ask: text, looksMax: fc.integer({ min: 1, max: 6 }) });
      let number = 0;
      await fc.assert(
        fc.asyncProperty(fc.array(fc.oneof(boot, end, ask), { maxLength: 6 }), async (steps) => {
          for (const step of steps) {
            if ("boot" in step && living.size < HOST_VCPUS) {
              number += 1;
              living.set(number, step.boot);
              const spec = { keyName: step.boot };
              await store.dispatch([dispatchOf({ server: number, task: number, hosts: [0], spec })]);
            } else if ("end" in step && living.size > 0) {
              const gone = [...living.keys()][step.end % living.size]!;
              living.delete(gone);
              await store.requestDelete([deleteTask(gone, 1_000 + gone)]);
              await store.commitDeleted([tenureOf(await cell().take(1_000 + gone, 0))]);
            } else if ("ask" in step) {
              const { ask: contains, looksMax } = step;
              const values = [...new Set(living.values())].filter((value) => value.includes(contains)).sort();
              const isTooMuch = new Set(living.values()).size > looksMax;
              expect(await store.attributeValues({ attribute: "key", contains, looksMax })).toEqual(
                isTooMuch ? null : values,
              );
            }
          }
        }),
        { numRuns: 25 },
      );
    });

    test("do not count names of servers that have been deleted since the last question", async () => {
      const { store } = cell();
      const boot = (number: number, keyName: string) =>
        store.dispatch([dispatchOf({ server: number, task: number, hosts: [0], spec: { keyName } })]);
      const named = (contains: string) => store.attributeValues({ attribute: "key", contains, looksMax: 2 });
      await boot(1, "one");
      await boot(2, "two");
      expect(await named("")).toEqual(["one", "two"]);
      await store.requestDelete([deleteTask(1, 1_001)]);
      await store.commitDeleted([tenureOf(await cell().take(1_001, 0))]);
      await boot(3, "three");
      expect(await named("t")).toEqual(["three", "two"]);
      await boot(4, "four");
      expect(await named("t")).toBeNull();
    });

    test("are those of the servers of a list, in any stretches, whether few or many of them have a value", async () => {
      const { store } = cell();
      const servers = Array.from({ length: 2 * HOST_VCPUS }, (_, number) => ({
        uuid: serverId(number),
        createdAtMs: 1_700_000_000_000 + Math.floor(number / 2),
        keyName: number < HOST_VCPUS ? "often" : `key-${number % 7}`,
        projectId: number % 3 === 0 ? "another" : "project",
        userId: number % 5 === 0 ? "bob" : "ann",
        status: number % 2 === 0 ? "ERROR" : "BUILD",
      }));
      for (const [number, { uuid: _, status, ...spec }] of servers.entries()) {
        await store.dispatch([dispatchOf({ server: number, task: number, hosts: [number % 2], spec })]);
        if (status === "BUILD") continue;
        const tenure = tenureOf(await cell().take(number, 0));
        await store.commitError([{ ...tenure, selection: 0, attemptReason: "x", reason: "x" }]);
      }
      const names = ["often", "none", ...Array.from({ length: 7 }, (_, at) => `key-${at}`)];
      const statuses = ["SHUTOFF", "PAUSED", "ERROR", "SUSPENDED", "RESCUED"];
      const values = fc.oneof(
        fc.record({
          attribute: fc.constant("key" as const),
          of: fc.uniqueArray(fc.constantFrom(...names), { minLength: 1 }),
        }),
        fc.record({ attribute: fc.constant("status" as const), of: fc.constant(statuses) }),
      );
      const asked = fc.record({
        values,
        projectId: fc.constantFrom(null, "another"),
        userId: fc.constantFrom(null, "bob"),
        oldestFirst: fc.boolean(),
        limit: fc.integer({ min: 1, max: 12 }),
        looksMax: fc.integer({ min: 1, max: 40 }),
      });
      await fc.assert(
        fc.asyncProperty(asked, async ({ values: { attribute, of }, userId, ...query }) => {
          const { projectId, oldestFirst } = query;
          const [value = "", ...otherValues] = of;
          const others = userId === null ? [] : ([{ attribute: "user", value: userId }] as const);
          const wanted = servers
            .filter(({ keyName, status }) => of.includes(attribute === "key" ? keyName : status))
            .filter((server) => projectId === null || server.projectId === projectId)
            .filter((server) => userId === null || server.userId === userId)
            .sort((one, other) => newestFirst(one, other) * (oldestFirst ? -1 : 1));
          const found: string[] = [];
          let after: AttributeQuery["after"] = null;
          do {
            const stretch = await store.serversByAttribute({
              ...{ attribute, value, otherValues, others, ...query, after },
            });
            expect(stretch.servers.length).toBeLessThanOrEqual(query.limit);
            found.push(...stretch.servers.map(({ uuid }) => uuid));
            after = stretch.resumeAt;
          } while (after !== null);
          expect(found).toEqual(wanted.map(({ uuid }) => uuid));
        }),
        { numRuns: 60 },
      );
    });
  });
}
