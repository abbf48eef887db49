import { expect, test } from "vitest";
import { placesOf } from "../../core/tasks/group-rule.ts";
import type { Home } from "../../core/tasks/home.ts";
import { beginOperationOn } from "../rigs/begin-operation.ts";
import { conductorId, deleteTask, hostTree, serverId, taskId } from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";
import { groupedServers, groupOf, move } from "./grouped-servers.ts";

/** Concurrent claims of boots and moves for servers of one group. */
export function groupRaces(cell: () => CellUnderTest): void {
  const { build, boot, begin, step } = groupedServers(cell);

  test("of a boot and a live migration to the same host at once, one gets it", async () => {
    const { store } = cell();
    for (let round = 0; round < 12; round += 1) {
      const of = groupOf("anti-affinity", 100 + round);
      const [mover, newcomer] = [200 + round * 2, 201 + round * 2];
      await boot(mover, 0, of);
      const [begun, [dispatched]] = await Promise.all([
        beginOperationOn(store, { server: mover, kind: "live-migrate", hosts: [1], taskId: move(mover) }),
        store.dispatch([build(newcomer, 1, of)]),
      ]);
      expect([
        ["begun", "group-conflict"],
        ["refused", "dispatched"],
      ]).toContainEqual([begun.outcome.kind, dispatched?.kind]);
      await store.requestDelete([deleteTask(mover, 1000 + mover), deleteTask(newcomer, 1000 + newcomer)]);
      for (const server of [mover, newcomer]) {
        const [taken] = await store.takeTasks(conductorId(0), [taskId(1000 + server)]);
        if (taken !== undefined) await store.commitDeleted([{ ...tenureOf(taken), migrations: [move(server)] }]);
      }
      expect((await store.homes([serverId(mover)]))[0]?.host ?? null).toBeNull();
    }
  });

  test("of a hopping move and a boot to the same host at once, one gets it", async () => {
    const { store } = cell();
    for (let round = 0; round < 12; round += 1) {
      const of = groupOf("anti-affinity", 200 + round);
      const [mover, newcomer] = [300 + round * 2, 301 + round * 2];
      await boot(mover, 0, of);
      await begin(mover, "live-migrate", 1, 2);
      const [stepped, [dispatched]] = await Promise.all([
        step(mover, ["preparing", "preparing"], { next: 1 }),
        store.dispatch([build(newcomer, 2, of)]),
      ]);
      expect([
        ["committed", "group-conflict"],
        ["refused", "dispatched"],
      ]).toContainEqual([stepped?.kind, dispatched?.kind]);
      await store.requestDelete([deleteTask(mover, 1000 + mover), deleteTask(newcomer, 1000 + newcomer)]);
      for (const server of [mover, newcomer]) {
        const [taken] = await store.takeTasks(conductorId(0), [taskId(1000 + server)]);
        if (taken !== undefined) await store.commitDeleted([{ ...tenureOf(taken), migrations: [move(server)] }]);
      }
    }
  });

  test("moves, hops and boots of several groups at once, in different orders, all end and break no group's rule", async () => {
    const { store, ledger } = cell();
    const HOSTS = 6;
    await ledger.putTrees(Array.from({ length: HOSTS }, (_, host) => hostTree(host, 200)));
    for (let round = 0; round < 6; round += 1) {
      const groups = [0, 1, 2, 3].map((at) => groupOf("anti-affinity", 400 + round * 10 + at));
      const first = 400 + round * 100;
      // The servers first + 10 g + h of each group g are on host h, and move to one of the other hosts.
      for (const [at, of] of groups.entries()) for (const host of [0, 1]) await boot(first + at * 10 + host, host, of);
      const moves = groups.flatMap((_, at) =>
        [0, 1].map((host) => ({ server: first + at * 10 + host, hosts: [2 + ((at + host) % 4), 2 + ((at + 1) % 4)] })),
      );
      const boots = groups.map((of, at) =>
        [2, 3, 4, 5].map((host) => build(first + at * 10 + host, 2 + ((host + at) % 4), of)),
      );
      await Promise.all([
        ...moves.map(async ({ server, hosts }) => {
          const { outcome } = await beginOperationOn(store, {
            server,
            kind: "live-migrate",
            hosts,
            taskId: move(server),
          });
          if (outcome.kind === "begun") await step(server, ["preparing", "preparing"], { next: 1 });
        }),
        store.dispatch(boots.flat()),
        store.dispatch(boots.flat().reverse()),
      ]);
      const servers = groups.map((_, at) => [0, 1, 2, 3, 4, 5].map((host) => serverId(first + at * 10 + host)));
      for (const members of servers) {
        const homes = await store.homes(members);
        const places = homes.flatMap(({ host, move: open }) => placesOf(host, open && placed(open)));
        expect(new Set(places).size).toBe(places.length);
      }
    }
  });
}

const placed = ({ source, dest }: NonNullable<Home["move"]>) => ({
  sourceHost: source?.host ?? null,
  destHost: dest.host,
});
