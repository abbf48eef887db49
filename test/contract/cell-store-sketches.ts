import { describe, expect, test } from "vitest";
import { type SketchQuery, SPEC_FIELDS } from "../../core/stores/cell/listed-servers.ts";
import { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { deleteTask, dispatchOf, hostName, serverId } from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";

/** The parts of servers by which lists are sorted. */
export function serverSketchesContract(cell: () => CellUnderTest): void {
  describe("sketches of servers", () => {
    const createdAtMs = 1_700_000_000_500;
    const dispatchOn = (number: number, host: number, spec: Partial<ServerSpec>) =>
      cell().store.dispatch([
        dispatchOf({ server: number, task: number, hosts: [host], spec: { createdAtMs, ...spec } }),
      ]);
    const sketches = (query: Partial<SketchQuery>) =>
      cell().store.serverSketches({
        ...{ attribute: "user", value: "ann", others: [], projectId: null, looksMax: 10, parts: [], specFields: [] },
        ...query,
      });
    const found = async (query: Partial<SketchQuery>) => (await sketches(query))?.map(({ uuid }) => uuid).toSorted();

    test("have the parts that are asked for", async () => {
      await dispatchOn(1, 0, { userId: "ann" });
      const taken = await cell().take(1, 0);
      await cell().store.commitActive([{ ...tenureOf(taken), selection: 0 }]);
      const [server] = await cell().store.servers([serverId(1)]);
      const { uuid, status, taskState, host, updatedAtMs, launchedAtMs, spec } = server!;
      expect(launchedAtMs).not.toBeNull();
      const place = { uuid, createdAtMs };
      expect(await sketches({})).toEqual([place]);
      expect(await sketches({ parts: ["status"] })).toEqual([{ ...place, status, taskState }]);
      expect(await sketches({ parts: ["host"], specFields: ["name"] })).toEqual([
        { ...place, host, spec: ServerSpec.fromPartial({ name: spec.name }) },
      ]);
      expect(await sketches({ parts: ["updatedAt", "launchedAt"] })).toEqual([{ ...place, updatedAtMs, launchedAtMs }]);
    });

    test("have the fields of the spec that are asked for, and no others", async () => {
      await dispatchOn(1, 0, {
        ...{ userId: "ann", imageRef: "a", availabilityZone: "edge", imageProperties: { kernel_id: "k" } },
        ...{ hostname: "web", description: "d", accessIpV4: "10.0.0.1", accessIpV6: "fd00::1", keyName: "web" },
        ...{ configDrive: true, manualDisk: true, launchIndex: 2, tags: ["blue"], metadata: { a: "b" } },
      });
      const [server] = await cell().store.servers([serverId(1)]);
      for (const fields of [...SPEC_FIELDS.map((field) => [field]), SPEC_FIELDS]) {
        const asked = Object.fromEntries(fields.map((field) => [field, server!.spec[field]]));
        const [sketch] = (await sketches({ specFields: fields }))!;
        expect(sketch).toEqual({ uuid: serverId(1), createdAtMs, spec: ServerSpec.fromPartial(asked) });
      }
    });

    test("say of a server which parts it does not have yet", async () => {
      await dispatchOn(1, 0, { userId: "ann" });
      const taken = await cell().take(1, 0);
      await cell().store.commitError([{ ...tenureOf(taken), selection: 0, attemptReason: "x", reason: "x" }]);
      expect(await sketches({ parts: ["status", "host", "launchedAt"] })).toEqual([
        { uuid: serverId(1), createdAtMs, status: "ERROR", taskState: null, host: null, launchedAtMs: null },
      ]);
    });

    test("are those of all servers that have the values, of one project or of all", async () => {
      await dispatchOn(1, 0, { userId: "ann", imageRef: "a", keyName: "web" });
      await dispatchOn(2, 0, { userId: "ann", imageRef: "b", projectId: "another" });
      await dispatchOn(3, 1, { userId: "bob", imageRef: "a" });
      await dispatchOn(4, 2, { userId: "ann", imageRef: "a", keyName: "db", createdAtMs: createdAtMs + 1 });
      const image = { attribute: "image", value: "a" } as const;
      const key = { attribute: "key", value: "none", otherValues: ["web", "db"] } as const;
      const onHosts = { attribute: "host", value: hostName(0), otherValues: [hostName(1)] } as const;
      expect(await found({})).toEqual([1, 2, 4].map(serverId));
      expect(await found({ projectId: "another" })).toEqual([serverId(2)]);
      expect(await found({ others: [image] })).toEqual([1, 4].map(serverId));
      expect(await found({ ...image, others: [{ attribute: "user", value: "ann" }, onHosts] })).toEqual([serverId(1)]);
      expect(await found(key)).toEqual([1, 4].map(serverId));
      expect(await found(onHosts)).toEqual([1, 2, 3].map(serverId));
      expect(await found({ ...onHosts, others: [image], specFields: ["flavor"] })).toEqual([1, 3].map(serverId));
      expect(await found({ value: "nobody" })).toEqual([]);
    });

    test("are not those of deleted servers, and are those of servers on no host if these are asked for", async () => {
      const { store } = cell();
      await dispatchOn(1, 0, { userId: "ann" });
      await dispatchOn(2, 0, { userId: "ann" });
      await dispatchOn(3, 1, { userId: "ann" });
      const taken = await cell().take(2, 0);
      await store.commitError([{ ...tenureOf(taken), selection: 0, attemptReason: "x", reason: "x" }]);
      await store.requestDelete([deleteTask(3, 13)]);
      expect(await found({})).toEqual([1, 2, 3].map(serverId));
      await store.commitDeleted([tenureOf(await cell().take(13, 0))]);
      expect(await found({})).toEqual([1, 2].map(serverId));
      const onHost = { attribute: "host", value: hostName(0) } as const;
      expect(await found(onHost)).toEqual([serverId(1)]);
      expect(await found({ ...onHost, orNone: true })).toEqual([1, 2].map(serverId));
      expect(await found({ ...onHost, orNone: true, others: [{ attribute: "status", value: "ERROR" }] })).toEqual([
        serverId(2),
      ]);
    });

    test("are not told when more servers have the values than may be looked at", async () => {
      for (const number of [1, 2, 3]) await dispatchOn(number, 0, { userId: "ann", imageRef: `image-${number}` });
      await dispatchOn(4, 0, { userId: "bob" });
      expect(await found({ looksMax: 3 })).toEqual([1, 2, 3].map(serverId));
      expect(await sketches({ looksMax: 2 })).toBeNull();
      expect(await sketches({ looksMax: 2, projectId: "another" })).toBeNull();
      expect(await sketches({ looksMax: 2, others: [{ attribute: "image", value: "image-1" }] })).toBeNull();
      expect(await sketches({ looksMax: 3, value: "bob", otherValues: ["ann"] })).toBeNull();
    });
  });
}
