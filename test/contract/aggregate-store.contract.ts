import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import type { AggregateRecord } from "../../core/scheduling/aggregate-record.ts";
import type { AggregateStore } from "../../core/stores/api/aggregate-store.ts";

/** The guarantees of both implementations of the aggregates' store. */
export function aggregateStoreContract(name: string, makeStore: () => Promise<AggregateStore>): void {
  describe(`aggregates in ${name}`, () => {
    let store: AggregateStore;
    beforeEach(async () => {
      store = await makeStore();
    });

    const make = async (aggregateName: string, zone: string | null = null): Promise<AggregateRecord> => {
      const outcome = await store.create({ uuid: randomUUID(), name: aggregateName, zone });
      if (outcome.kind !== "written") throw new Error(outcome.kind);
      return outcome.aggregate;
    };

    test("a new aggregate has no hosts, and is listed by id", async () => {
      const fast = await make("fast");
      const east = await make("east", "zone-east");
      expect(fast).toMatchObject({ name: "fast", metadata: {}, hosts: [], updatedAtMs: null });
      expect(east).toMatchObject({ metadata: { availability_zone: "zone-east" } });
      expect(east.id).toBeGreaterThan(fast.id);
      expect(await store.aggregates()).toEqual([fast, east]);
      expect(await store.aggregate(fast.id)).toEqual(fast);
    });

    test("every call answers that an unknown aggregate does not exist", async () => {
      for (const id of [999_999, 2 ** 40]) {
        expect(await store.aggregate(id)).toBeNull();
        expect(await store.update(id, { name: "x" })).toEqual({ kind: "unknown" });
        expect(await store.delete(id)).toEqual({ kind: "unknown" });
        expect(await store.addHost(id, "h1")).toEqual({ kind: "unknown" });
        expect(await store.removeHost(id, "h1")).toEqual({ kind: "unknown" });
        expect(await store.setMetadata(id, { a: "b" })).toEqual({ kind: "unknown" });
      }
    });

    test("no two aggregates have the same name", async () => {
      const fast = await make("fast");
      const slow = await make("slow");
      expect(await store.create({ uuid: randomUUID(), name: "fast", zone: null })).toEqual({ kind: "name-taken" });
      expect(await store.update(slow.id, { name: "fast" })).toEqual({ kind: "name-taken" });
      expect(await store.update(fast.id, { name: "fast" })).toMatchObject({ kind: "written" });
    });

    test("hosts are added and removed, each once, and are sorted", async () => {
      const { id } = await make("fast");
      await store.addHost(id, "h2");
      expect(await store.addHost(id, "h1")).toMatchObject({ kind: "written", aggregate: { hosts: ["h1", "h2"] } });
      expect(await store.addHost(id, "h1")).toEqual({ kind: "host-present" });
      expect(await store.removeHost(id, "h2")).toMatchObject({ kind: "written", aggregate: { hosts: ["h1"] } });
      expect(await store.removeHost(id, "h2")).toEqual({ kind: "host-absent" });
    });

    test("metadata is merged, and null removes a key", async () => {
      const { id } = await make("fast");
      await store.setMetadata(id, { ssd: "true", rack: "r1" });
      const outcome = await store.setMetadata(id, { rack: null, none: null, "it's": 'a "quote"' });
      expect(outcome).toMatchObject({ aggregate: { metadata: { ssd: "true", "it's": 'a "quote"' } } });
      expect((await store.aggregate(id))?.metadata).toEqual({ ssd: "true", "it's": 'a "quote"' });
      expect((await store.aggregate(id))?.updatedAtMs).not.toBeNull();
    });

    test("no host gets into two zones by any call", async () => {
      const east = await make("east", "zone-east");
      const west = await make("west", "zone-west");
      const plain = await make("plain");
      await store.addHost(east.id, "h1");
      await store.addHost(plain.id, "h1");
      const conflict = { kind: "zone-conflict", host: "h1", zone: "zone-east" };
      expect(await store.addHost(west.id, "h1")).toEqual(conflict);
      expect(await store.setMetadata(plain.id, { availability_zone: "zone-west" })).toEqual(conflict);
      expect(await store.update(plain.id, { name: "renamed", zone: "zone-west" })).toEqual(conflict);
      expect((await store.aggregate(plain.id))?.name).toBe("plain");
      expect(await store.update(plain.id, { zone: "zone-east" })).toMatchObject({ kind: "written" });
      expect(await store.update(east.id, { zone: "zone-north" })).toMatchObject({ kind: "zone-conflict" });
    });

    test("two concurrent calls that would put one host into two zones do not both succeed", async () => {
      const east = await make("east", "zone-east");
      const west = await make("west", "zone-west");
      const outcomes = await Promise.all([store.addHost(east.id, "h1"), store.addHost(west.id, "h1")]);
      expect(outcomes.map((outcome) => outcome.kind).sort()).toEqual(["written", "zone-conflict"]);
    });

    test("an aggregate with hosts is not deleted, and a deleted one is remembered by its UUID", async () => {
      const { id, uuid } = await make("fast");
      await store.addHost(id, "h1");
      expect(await store.delete(id)).toEqual({ kind: "has-hosts" });
      await store.removeHost(id, "h1");
      expect(await store.delete(id)).toEqual({ kind: "deleted", uuid });
      expect(await store.aggregates()).toEqual([]);
      expect(await store.formerUuids()).toEqual([uuid]);
    });

    test("the version rises with every change", async () => {
      const versions = [await store.version()];
      const { id } = await make("fast");
      versions.push(await store.version());
      await store.addHost(id, "h1");
      versions.push(await store.version());
      await store.setMetadata(id, { a: "b" });
      versions.push(await store.version());
      await store.removeHost(id, "h1");
      versions.push(await store.version());
      await store.delete(id);
      versions.push(await store.version());
      expect(new Set(versions).size).toBe(versions.length);
      expect([...versions].sort((a, b) => a - b)).toEqual(versions);
    });
  });
}
