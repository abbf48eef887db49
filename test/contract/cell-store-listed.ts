import { describe, expect, test } from "vitest";
import type { AttributeQuery } from "../../core/stores/cell/listed-servers.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { deleteTask, dispatchOf, hostName, providerOf, serverId } from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";

/** Lists of servers in the order of creation. */
export function listedServersContract(cell: () => CellUnderTest): void {
  describe("servers by an attribute", () => {
    const found = async (query: Partial<AttributeQuery>) => {
      const all = {
        attribute: "flavor",
        value: "1",
        projectId: null,
        oldestFirst: false,
        after: null,
        looksMax: 10,
        limit: 10,
      } as const;
      const { servers, resumeAt } = await cell().store.serversByAttribute({ ...all, ...query });
      return [servers.map(({ uuid }) => uuid), resumeAt?.uuid ?? null];
    };
    const dispatchWith = (number: number, spec: Partial<ServerSpec>) =>
      cell().store.dispatch([dispatchOf({ server: number, task: number, hosts: [0], spec })]);
    const createdAtMs = 1_700_000_000_500;
    const imageRef = "a-very-long-image-".repeat(50);

    test("are found in the order of the list, in stretches of a given number of servers", async () => {
      await dispatchWith(1, { createdAtMs, imageRef, userId: "ann" });
      await dispatchWith(2, { createdAtMs, imageRef, userId: "ann", name: "x".repeat(255), projectId: "another" });
      await dispatchWith(3, { createdAtMs: createdAtMs + 1, imageRef, userId: "bob" });
      await dispatchWith(4, { createdAtMs, imageRef: "", userId: "carl" });
      const query = { attribute: "image", value: imageRef } as const;
      expect(await found(query)).toEqual([[3, 1, 2].map(serverId), null]);
      expect(await found({ ...query, oldestFirst: true })).toEqual([[2, 1, 3].map(serverId), null]);
      expect(await found({ ...query, looksMax: 2 })).toEqual([[3, 1].map(serverId), serverId(1)]);
      const after = { uuid: serverId(1), createdAtMs };
      expect(await found({ ...query, after })).toEqual([[serverId(2)], null]);
      expect(await found({ ...query, after, oldestFirst: true })).toEqual([[serverId(3)], null]);
      expect(await found({ ...query, projectId: "another", looksMax: 2 })).toEqual([[], serverId(1)]);
      expect(await found({ ...query, projectId: "another" })).toEqual([[serverId(2)], null]);
      expect(await found({ attribute: "user", value: "ann" })).toEqual([[1, 2].map(serverId), null]);
      expect(await found({ attribute: "user", value: "an" })).toEqual([[], null]);
    });

    test("are found by one value, and of those only the ones that have values of other attributes", async () => {
      const flavor = (id: string) => ({ id, name: id, vcpus: 1, memoryMib: 1, diskGib: 0 }) as ServerSpec["flavor"];
      for (const [number, userId, imageRef, id, keyName] of [
        [1, "ann", "image-1", "a", "web"],
        [2, "ann", "image-2", "a", ""],
        [3, "bob", "image-1", "a", "db"],
        [4, "ann", "image-1", "b", "db"],
      ] as const)
        await dispatchWith(number, {
          ...{ createdAtMs: createdAtMs + number, userId, imageRef, keyName },
          flavor: { ephemeralGib: 0, swapMib: 0, extraSpecs: {}, ...flavor(id) } as ServerSpec["flavor"],
        });
      const [user, image] = [
        { attribute: "user", value: "ann" },
        { attribute: "image", value: "image-1" },
      ] as const;
      const [key, ofFlavor] = [
        { attribute: "key", value: "none", otherValues: ["web", "db"] },
        { attribute: "flavor", value: "a" },
      ] as const;
      expect(await found({ ...user, others: [image] })).toEqual([[4, 1].map(serverId), null]);
      expect(await found({ ...image, others: [user] })).toEqual([[4, 1].map(serverId), null]);
      expect(await found({ ...image, others: [user, ofFlavor, key] })).toEqual([[serverId(1)], null]);
      expect(await found({ ...key, others: [ofFlavor] })).toEqual([[3, 1].map(serverId), null]);
      expect(await found({ ...user, others: [key], looksMax: 2 })).toEqual([[serverId(4)], serverId(2)]);
      expect(await found({ ...user, others: [{ attribute: "image", value: "none" }], looksMax: 2 })).toEqual([
        [],
        serverId(2),
      ]);
    });

    test("are found by the last digits of the id of their request", async () => {
      const requestId = (digits: string) => `req-00000000-0000-4000-8000-00${digits}`;
      await dispatchWith(1, { createdAtMs, requestId: requestId("00000000ab") });
      await dispatchWith(2, { createdAtMs: createdAtMs + 1, requestId: requestId("00000000ab") });
      await dispatchWith(3, { createdAtMs, requestId: requestId("00000001ab") });
      const query = { attribute: "reservation", value: "00000000ab" } as const;
      expect(await found(query)).toEqual([[2, 1].map(serverId), null]);
      expect(await found({ ...query, looksMax: 1 })).toEqual([[serverId(2)], serverId(2)]);
      expect(await found({ ...query, after: { uuid: serverId(2), createdAtMs: createdAtMs + 1 } })).toEqual([
        [serverId(1)],
        null,
      ]);
      expect(await found({ ...query, value: "ab" })).toEqual([[], null]);
    });

    test("are found by each of several values, in one order", async () => {
      for (const [number, keyName] of [
        [1, "web"],
        [2, "db"],
        [3, "web-2"],
        [4, ""],
      ] as const)
        await dispatchWith(number, { createdAtMs: createdAtMs + number, keyName });
      const query = { attribute: "key", value: "web", otherValues: ["web-2"] } as const;
      expect(await found({ attribute: "key", value: "web" })).toEqual([[serverId(1)], null]);
      expect(await found(query)).toEqual([[3, 1].map(serverId), null]);
      expect(await found({ ...query, oldestFirst: true })).toEqual([[1, 3].map(serverId), null]);
      expect(await found({ ...query, looksMax: 1 })).toEqual([[serverId(3)], serverId(3)]);
      const after = { uuid: serverId(3), createdAtMs: createdAtMs + 3 };
      expect(await found({ ...query, after })).toEqual([[serverId(1)], null]);
    });

    test("have the different values that contain a text, unless there are more than may be looked at", async () => {
      const { store } = cell();
      const values = (contains: string, looksMax = 3) =>
        store.attributeValues({ attribute: "key", contains, looksMax });
      expect(await values("web")).toEqual([]);
      for (const [number, keyName] of [
        [1, "web"],
        [2, "web"],
        [3, "db"],
        [4, "my-web"],
        [5, ""],
      ] as const)
        await dispatchWith(number, { keyName });
      expect([await values("web"), await values("b"), await values("x")]).toEqual([
        ["my-web", "web"],
        ["db", "my-web", "web"],
        [],
      ]);
      expect([await values("web", 2), await values("x", 2)]).toEqual([null, null]);
      await store.requestDelete([deleteTask(3, 13)]);
      await store.commitDeleted([tenureOf(await cell().take(13, 0))]);
      expect(await values("web", 2)).toEqual(["my-web", "web"]);
    });

    test("are found until as many pass as are asked for, and the next ones after these", async () => {
      for (const [number, imageRef] of [
        [1, "a"],
        [2, "b"],
        [3, "a"],
        [4, "b"],
        [5, "a"],
      ] as const)
        await dispatchWith(number, { createdAtMs: createdAtMs + number, imageRef, userId: "ann" });
      const query = {
        attribute: "user",
        value: "ann",
        others: [{ attribute: "image", value: "a" }],
      } as const;
      expect(await found({ ...query, limit: 2 })).toEqual([[5, 3].map(serverId), serverId(3)]);
      expect(await found({ ...query, limit: 2, oldestFirst: true })).toEqual([[1, 3].map(serverId), serverId(3)]);
      const after = { uuid: serverId(3), createdAtMs: createdAtMs + 3 };
      expect(await found({ ...query, limit: 2, after })).toEqual([[serverId(1)], null]);
      expect(await found({ ...query, limit: 2, looksMax: 2 })).toEqual([[serverId(5)], serverId(4)]);
      expect(await found({ ...query, limit: 1, others: [] })).toEqual([[serverId(5)], serverId(5)]);
    });

    test("have a value in its field, and not only somewhere in their specs", async () => {
      for (const [number, spec] of [
        [1, { keyName: "web" }],
        [2, { name: "web", keyName: "db" }],
        [3, { keyName: "web-2" }],
        [4, { metadata: { web: "web" } }],
      ] as const)
        await dispatchWith(number, { createdAtMs: createdAtMs + number, userId: "ann", imageRef: "image-1", ...spec });
      const others = [{ attribute: "key", value: "web" }] as const;
      expect(await found({ attribute: "user", value: "ann", others })).toEqual([[serverId(1)], null]);
      expect(await found({ attribute: "image", value: "image-1", others })).toEqual([[serverId(1)], null]);
    });

    test("of several hosts are looked at in one order until enough pass", async () => {
      for (const number of [1, 2, 3, 4, 5, 6])
        await cell().store.dispatch([
          dispatchOf({
            ...{ server: number, task: number, hosts: [number % 3] },
            spec: { createdAtMs: createdAtMs + number, userId: number % 2 === 0 ? "ann" : "bob" },
          }),
        ]);
      const [value, ...otherValues] = [0, 1, 2].map(hostName);
      const others = [{ attribute: "user", value: "ann" }] as const;
      const query = { attribute: "host", value: value!, otherValues, others } as const;
      expect(await found(query)).toEqual([[6, 4, 2].map(serverId), null]);
      expect(await found({ ...query, limit: 2 })).toEqual([[6, 4].map(serverId), serverId(4)]);
      expect(await found({ ...query, limit: 2, oldestFirst: true })).toEqual([[2, 4].map(serverId), serverId(4)]);
      const after = { uuid: serverId(4), createdAtMs: createdAtMs + 4 };
      expect(await found({ ...query, limit: 2, after })).toEqual([[serverId(2)], null]);
      expect(await found({ ...query, projectId: "nobody" })).toEqual([[], null]);
    });

    test("come in one order without a gap when they are read in stretches of several lists", async () => {
      // Most of the newest servers are on one host, so that its list is cut before those of the others.
      const numbers = Array.from({ length: 20 }, (_, at) => at + 1);
      for (const number of numbers)
        await cell().store.dispatch([
          dispatchOf({
            ...{ server: number, task: number, hosts: [number > 14 ? 0 : number % 3] },
            spec: { createdAtMs: createdAtMs + (number >> 1) },
          }),
        ]);
      const expected = numbers.toSorted((a, b) => (b >> 1) - (a >> 1) || a - b);
      const [value, ...otherValues] = [0, 1, 2].map(hostName);
      for (const oldestFirst of [false, true]) {
        const listed: string[] = [];
        for (let after: AttributeQuery["after"] = null; ; ) {
          const { servers, resumeAt } = await cell().store.serversByAttribute({
            ...{ attribute: "host", value: value!, otherValues, projectId: null, oldestFirst },
            ...{ after, looksMax: 4, limit: 3 },
          });
          expect(servers.length).toBeLessThanOrEqual(3);
          listed.push(...servers.map(({ uuid }) => uuid));
          if (resumeAt === null) break;
          after = resumeAt;
        }
        expect(listed).toEqual((oldestFirst ? expected.toReversed() : expected).map(serverId));
      }
    });

    test("are found by their status, and on hosts or on none", async () => {
      const { store } = cell();
      for (const [number, host] of [
        [1, 0],
        [2, 1],
        [3, 0],
        [4, 2],
      ] as const)
        await store.dispatch([
          dispatchOf({
            ...{ server: number, task: number, hosts: [host] },
            spec: { createdAtMs: createdAtMs + number, ...(number === 4 && { projectId: "another" }) },
          }),
        ]);
      for (const [task, host] of [
        [3, 0],
        [4, 2],
      ] as const) {
        const taken = await cell().take(task, host);
        await store.commitError([{ ...tenureOf(taken), selection: 0, attemptReason: "x", reason: "x" }]);
      }
      const inError = { attribute: "status", value: "SHUTOFF", otherValues: ["ERROR"] } as const;
      const onHosts = { attribute: "host", value: hostName(0), otherValues: [hostName(7)] } as const;
      expect(await found(inError)).toEqual([[4, 3].map(serverId), null]);
      expect(await found({ ...inError, oldestFirst: true })).toEqual([[3, 4].map(serverId), null]);
      expect(await found({ ...inError, projectId: "another", looksMax: 1 })).toEqual([[serverId(4)], serverId(4)]);
      expect(await found({ ...inError, projectId: "nobody" })).toEqual([[], null]);
      expect(await found({ ...inError, limit: 1, looksMax: 1 })).toEqual([[serverId(4)], serverId(4)]);
      const after = { uuid: serverId(4), createdAtMs: createdAtMs + 4 };
      expect(await found({ ...inError, after })).toEqual([[serverId(3)], null]);
      expect(await found({ attribute: "status", value: "BUILD" })).toEqual([[], null]);
      expect(await found(onHosts)).toEqual([[serverId(1)], null]);
      expect(await found({ ...onHosts, orNone: true })).toEqual([[4, 3, 1].map(serverId), null]);
      expect(await found({ ...onHosts, orNone: true, others: [inError] })).toEqual([[4, 3].map(serverId), null]);
      expect(await found({ ...inError, others: [{ ...onHosts, orNone: true }] })).toEqual([[4, 3].map(serverId), null]);
      expect(await found({ ...inError, others: [onHosts] })).toEqual([[], null]);
      expect(await found({ attribute: "host", value: hostName(7), orNone: true, after })).toEqual([
        [serverId(3)],
        null,
      ]);
    });

    test("are found on the hosts whose names contain a text, unless these are more than may be looked at", async () => {
      const { store } = cell();
      await store.hostsUp(
        "agent-1",
        [0, 1, 2].map((host) => ({ name: hostName(host), rootProvider: providerOf(host) })),
      );
      for (const [number, host] of [
        [1, 0],
        [2, 1],
        [3, 0],
      ] as const)
        await store.dispatch([
          dispatchOf({ server: number, task: number, hosts: [host], spec: { createdAtMs: createdAtMs + number } }),
        ]);
      const on = async (contains: string, hostsMax = 9, limit = 9) =>
        (await store.serversOnHostsNamed(contains, { hostsMax, limit }))?.map(({ uuid }) => uuid) ?? null;
      expect([await on(hostName(0)), await on(hostName(0).slice(0, -1), 9, 2), await on("no-such-host")]).toEqual([
        [3, 1].map(serverId),
        [3, 2].map(serverId),
        [],
      ]);
      expect(await on("", 1)).toBeNull();
    });

    test("are found by their present flavor until they are deleted", async () => {
      const { store } = cell();
      await dispatchWith(1, {});
      const [server] = await store.servers([serverId(1)]);
      const value = server?.spec.flavor?.id ?? "";
      expect(await found({ value })).toEqual([[serverId(1)], null]);
      await store.requestDelete([deleteTask(1, 2)]);
      expect(await found({ value })).toEqual([[serverId(1)], null]);
      await store.commitDeleted([tenureOf(await cell().take(2, 0))]);
      expect(await found({ value })).toEqual([[], null]);
    });
  });
}
