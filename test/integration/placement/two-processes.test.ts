import { randomUUID } from "node:crypto";
import type { Pool } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PostgresCellArbiter } from "../../../adapters/postgres/api/postgres-cell-arbiter.ts";
import { createPool } from "../../../adapters/postgres/client/pool.ts";
import { PostgresLedger } from "../../../adapters/postgres/ledger/postgres-ledger.ts";
import { createPlacementStore } from "../../../adapters/postgres/placement/postgres-placement-store.ts";
import { consumerUuid, providerUuid, resourceClass } from "../../../core/ledger/ids.ts";
import type { CellArbiter } from "../../../core/stores/api/cell-arbiter.ts";
import { FederatedStore, type NamedStore } from "../../../services/api/placement/federation/federated-store.ts";
import { freshDatabase, type TestDatabase } from "../../rigs/databases.ts";

const ROUNDS = 30;
const OWNER = { projectId: "p", userId: "u", type: "INSTANCE" } as const;

let databases: readonly TestDatabase[];
let pools: readonly Pool[];
let cells: readonly [NamedStore, NamedStore];

beforeAll(async () => {
  databases = [await freshDatabase("cell"), await freshDatabase("cell"), await freshDatabase("api")];
  pools = databases.map(({ url }) => createPool({ url, applicationName: "two processes" }));
  const cellOf = (pool: Pool, name: string): NamedStore => ({
    name,
    store: createPlacementStore(pool, new PostgresLedger(pool)),
  });
  cells = [cellOf(pools[0]!, "east"), cellOf(pools[1]!, "west")];
});
afterAll(async () => {
  await Promise.all(pools.map((pool) => pool.end()));
  await Promise.all(databases.map((database) => database.drop()));
});

const arbiter = (options: ConstructorParameters<typeof PostgresCellArbiter>[1] = {}) =>
  new PostgresCellArbiter(pools[2]!, options);
/** The stores of one process, with its own memory, turns and arbiter. */
const processOf = (its: CellArbiter = arbiter()) => new FederatedStore(cells, null, its);
const provider = (name: string, uuid: string = randomUUID()) => ({ uuid: providerUuid(uuid), name, parent: null });
const kinds = (outcomes: readonly { readonly kind: string }[]) => outcomes.map(({ kind }) => kind).sort();

describe("two processes that get the same request at once, each for another cell", () => {
  test("one provider has the name and the UUID in the end", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const [name, uuid] = [randomUUID(), randomUUID()];
      const [one, other] = [processOf(), processOf()];
      const named = await Promise.all([
        one.createProvider(provider(name), "east"),
        other.createProvider(provider(name), "west"),
      ]);
      expect(kinds(named)).toEqual(["created", "name-taken"]);
      expect(await one.providers({ name })).toHaveLength(1);
      const identified = await Promise.all([
        one.createProvider(provider(randomUUID(), uuid), "east"),
        other.createProvider(provider(randomUUID(), uuid), "west"),
      ]);
      expect(identified.filter(({ kind }) => kind === "created")).toHaveLength(1);
    }
  });

  test("of two providers that are given one name, one gets it", async () => {
    for (let round = 0; round < ROUNDS; round += 1) {
      const names = [randomUUID(), randomUUID(), randomUUID()];
      const uuids = [providerUuid(randomUUID()), providerUuid(randomUUID())];
      const [one, other] = [processOf(), processOf()];
      await one.createProvider(provider(names[0]!, uuids[0]), "east");
      await one.createProvider(provider(names[1]!, uuids[1]), "west");
      const renamed = await Promise.all([
        one.updateProvider(uuids[0]!, { name: names[2]!, reparent: false }),
        other.updateProvider(uuids[1]!, { name: names[2]!, reparent: false }),
      ]);
      expect(kinds(renamed).filter((kind) => kind === "name-taken")).toHaveLength(1);
      expect(await one.providers({ name: names[2]! })).toHaveLength(1);
    }
  });

  test("a consumer holds something in one cell, and may go to the other one once it has released that", async () => {
    const hosts = [provider(randomUUID()), provider(randomUUID())];
    const setUp = processOf();
    for (const [at, host] of hosts.entries()) {
      await setUp.createProvider(host, cells[at]!.name);
      const room = { total: 1_000, reserved: 0, minUnit: 1, maxUnit: 1_000, stepSize: 1, allocationRatio: 1 };
      const inventories = new Map([[resourceClass("VCPU"), room]]);
      expect(await setUp.setInventories(host.uuid, 0, inventories)).toMatchObject({ kind: "written" });
    }
    const put = (process: FederatedStore, consumer: string, at: number | null) =>
      process.applyAllocations({
        steps: [
          {
            kind: "replace",
            consumer: consumerUuid(consumer),
            expected: "any",
            owner: OWNER,
            items: at === null ? [] : [{ provider: hosts[at]!.uuid, resourceClass: resourceClass("VCPU"), amount: 1 }],
          },
        ],
      });
    for (let round = 0; round < ROUNDS; round += 1) {
      const consumer = randomUUID();
      const [one, other] = [processOf(), processOf()];
      const outcomes = await Promise.all([put(one, consumer, 0), put(other, consumer, 1)]);
      expect(kinds(outcomes)).toEqual(["committed", "several-cells"]);
      expect(await one.consumers([consumerUuid(consumer)])).toHaveLength(1);
      expect((await put(other, consumer, null)).kind).toBe("committed");
      const elsewhere = outcomes[0]?.kind === "committed" ? 1 : 0;
      expect((await put(one, consumer, elsewhere)).kind).toBe("committed");
    }
  });
});

describe("a process that dies between its claim and its write", () => {
  test("blocks the name for other cells only until its claim has expired", async () => {
    const name = randomUUID();
    expect(await arbiter().claim([{ kind: "provider-name", key: name }], "east")).toMatchObject({ kind: "claimed" });
    expect(await processOf().createProvider(provider(name), "west")).toEqual({ kind: "name-taken" });
    const later = processOf(arbiter({ claimMs: 0 }));
    expect(await later.createProvider(provider(name), "west")).toMatchObject({ kind: "created" });
  });

  test("does not block the name for its own cell", async () => {
    const name = randomUUID();
    await arbiter().claim([{ kind: "provider-name", key: name }], "east");
    expect(await processOf().createProvider(provider(name), "east")).toMatchObject({ kind: "created" });
  });
});

test("whose claim was refused does not block its other names for the cells that own them", async () => {
  const [taken, free] = [randomUUID(), randomUUID()];
  await arbiter().claim([{ kind: "consumer", key: taken }], "east");
  const both = [free, taken].map((key) => ({ kind: "consumer", key }) as const);
  expect(await arbiter().claim(both, "west")).toEqual({ kind: "refused", cell: "east" });
  expect(await arbiter().claim([{ kind: "consumer", key: free }], "east")).toMatchObject({ kind: "claimed" });
});

test("that was paused since its claim writes nothing", async () => {
  let nowMs = 0;
  const slow = arbiter({ now: () => nowMs });
  const stopped: CellArbiter = {
    claim: async (names, cell) => {
      const claim = await slow.claim(names, cell);
      nowMs += 60_000;
      return claim;
    },
    release: (names, token) => slow.release(names, token),
  };
  const host = provider(randomUUID());
  expect(await processOf(stopped).createProvider(host, "east")).toEqual({ kind: "name-taken" });
  expect(await processOf().provider(host.uuid)).toBeNull();
});

test("a release does not affect a name that was claimed again since", async () => {
  const names = [{ kind: "consumer", key: randomUUID() }] as const;
  const [first, second] = [await arbiter().claim(names, "east"), await arbiter().claim(names, "east")];
  if (first.kind !== "claimed" || second.kind !== "claimed") throw new Error("refused");
  await arbiter().release(names, first.token);
  expect(await arbiter().claim(names, "west")).toEqual({ kind: "refused", cell: "east" });
  await arbiter().release(names, second.token);
  expect(await arbiter().claim(names, "west")).toMatchObject({ kind: "claimed" });
});

test("either all of several names are claimed or none, and claims in any order do not block each other", async () => {
  const [a, b] = [randomUUID(), randomUUID()].map((key) => ({ kind: "consumer", key }) as const);
  const claims = await Promise.all(
    Array.from({ length: 20 }, (_, at) =>
      arbiter().claim(at % 2 === 0 ? [a!, b!] : [b!, a!], at % 4 < 2 ? "east" : "west"),
    ),
  );
  const winners = new Set(
    claims.flatMap((claim, at) => (claim.kind === "claimed" ? [at % 4 < 2 ? "east" : "west"] : [])),
  );
  expect(winners.size).toBe(1);
});
