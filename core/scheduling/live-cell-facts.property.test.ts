import { expect, test } from "vitest";
import { serverId } from "../../test/contract/cell-fixtures.ts";
import { sceneOf, serverRow, specWith } from "../../test/rigs/facts-builders.ts";
import fc from "../../test/rigs/property.ts";
import { providerUuid } from "../ledger/ids.ts";
import type { RowChange } from "../ledger/row-change.ts";
import type { LiveCellFacts } from "./live-cell-facts.ts";

const HOSTS = ["a", "b", "c"];

/** A move of one of a few servers: between two hosts, without a source, or ended. Each server has one move at a time. */
const anyMove: fc.Arbitrary<RowChange> = fc
  .record({
    server: fc.integer({ min: 0, max: 4 }),
    sourceHost: fc.option(fc.constantFrom(...HOSTS)),
    destHost: fc.constantFrom(...HOSTS),
    ended: fc.boolean(),
    removed: fc.integer({ min: 0, max: 9 }),
  })
  .map(({ server, removed, ...move }) => {
    const uuid = `move-${server}`;
    return removed === 0
      ? { kind: "move-removed", uuid }
      : { kind: "move-put", uuid, serverUuid: serverId(server), ...move };
  });

/** A row of one of a few servers: with or without a home, building or not, in one of two groups or none; or the row's removal. */
const anyServer: fc.Arbitrary<RowChange> = fc
  .record({
    server: fc.integer({ min: 0, max: 4 }),
    host: fc.option(fc.constantFrom(...HOSTS)),
    status: fc.constantFrom("BUILD", "ACTIVE", "DELETED"),
    taskState: fc.constantFrom(null, "image_snapshot", "deleting"),
    group: fc.constantFrom("", "g1", "g2"),
    removed: fc.integer({ min: 0, max: 9 }),
  })
  .map(({ server, host, status, taskState, group, removed }) => {
    if (removed === 0) return { kind: "server-removed", uuid: serverId(server) };
    const membership = group === "" ? undefined : { uuid: group, policy: "affinity", maxServerPerHost: 0 };
    const revision = ["", "g1", "g2"].indexOf(group);
    return serverRow(specWith(server, { group: membership }), host, { status, taskState, specRevision: revision });
  });

const anyRow = fc.oneof(anyServer, anyMove);

function membersAt(facts: LiveCellFacts, host: string): string {
  const { servers, settled } = facts.membersOf("g1").get(host) ?? { servers: 0, settled: 0 };
  return `${servers}/${settled}`;
}

test("facts match the last row of each server and of each move, and every host that changed was reported", () => {
  fc.assert(
    fc.property(fc.array(anyRow, { maxLength: 60 }), (rows) => {
      const { view, facts } = sceneOf({ a: {}, b: {}, c: {} });
      const shown = () =>
        HOSTS.map((name) => {
          const host = facts.at(view.slots.find(providerUuid(name)))!;
          return `${[...host.servers.keys()].sort().join()} ${host.ioOps} ${membersAt(facts, name)}`;
        });
      const last = new Map<string, RowChange>();
      for (const row of rows) {
        const before = shown();
        const mark = view.changes.mark();
        facts.apply(row);
        if ("uuid" in row) last.set(row.uuid, row);
        const told = new Set<number>();
        expect(view.changes.since(mark, (root) => told.add(root))).toBe(true);
        shown().forEach((now, index) => {
          if (now !== before[index]) expect(told).toContain(view.slots.find(providerUuid(HOSTS[index]!)));
        });
      }
      const anew = sceneOf({ a: {}, b: {}, c: {} });
      anew.facts.applyAll(last.values());
      expect(shown()).toEqual(
        HOSTS.map((name) => {
          const host = anew.facts.at(anew.view.slots.find(providerUuid(name)))!;
          return `${[...host.servers.keys()].sort().join()} ${host.ioOps} ${membersAt(anew.facts, name)}`;
        }),
      );
    }),
  );
});
