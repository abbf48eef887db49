import pg from "pg";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { dropDatabase, ensureDatabase } from "../../adapters/postgres/client/databases.ts";
import { seededRandom } from "../../core/scheduling/seeded-random.ts";
import type { Method } from "../placement/placement-client.ts";
import { PlacementRig } from "../placement/placement-rig.ts";
import { type Answers, type Compared, comparable, isExpected, isSame } from "./placement-differences.ts";
import { CONSUMERS, PlacementRequests, PROVIDERS } from "./placement-requests.ts";
import { hasPlacement, hasPythonModule, type RealPlacement, startRealPlacement } from "./real-placement.ts";

const RUNS = Number(process.env.BERTH_TEST_RUNS ?? 3);
const SEED = Number(process.env.BERTH_TEST_SEED ?? Date.now() % 1_000_000);
const REQUESTS = 400;
const RUN_MS_MAX = 300_000;

/** A request that the two answered differently. */
interface Difference {
  readonly request: string;
  readonly upstream: string;
  readonly berth: string;
}

// Needs Debian's package placement-api, which `npm run test:openstack` installs. BERTH_TEST_RUNS and BERTH_TEST_SEED choose other sequences.
describe.runIf(hasPlacement && hasPythonModule("psycopg2"))(
  "random requests to upstream's Placement and to Berth",
  () => {
    const admin = inject("postgresUrl");
    let name: string;
    let real: RealPlacement;
    let rig: PlacementRig;
    let upstream: pg.Client;

    beforeAll(async () => {
      name = `test_beside_${process.pid}`;
      await ensureDatabase(admin, name);
      const url = new URL(admin);
      url.pathname = `/${name}`;
      real = await startRealPlacement(url.href.replace(/^postgres(ql)?:/, "postgresql+psycopg2:"));
      upstream = new pg.Client({ connectionString: url.href });
      await upstream.connect();
    }, 900_000);
    afterAll(async () => {
      await upstream?.end();
      await real?.stop();
      await dropDatabase(admin, name);
    });

    const ask = async (method: Method, path: string, version: string, body?: unknown): Promise<Answers> => {
      const theirs = await real.call(method, path, version, body);
      const ours = await rig.client.call(method, path, { version, body });
      return {
        ...{ theirs: comparable(theirs), ours: comparable({ status: ours.status, body: ours.json ?? null }) },
        namesUnknown: ours.status === 400 && /No such (resource class|trait)/.test(ours.text),
      };
    };

    test.each(Array.from({ length: RUNS }, (_, at) => SEED + at))(
      "have the same answers (seed %i)",
      async (seed) => {
        await emptyTables(upstream);
        rig = await PlacementRig.start();
        try {
          const requests = new PlacementRequests(seededRandom(seed));
          const differences: Difference[] = [];
          for (let at = 0; at < REQUESTS; at += 1) {
            const { providers, consumers } = await rig.dump();
            const { method, path, version, body } = requests.next({
              providers: new Map(providers.map(({ uuid, generation }) => [uuid, generation])),
              consumers: new Map(consumers.map(({ uuid, generation }) => [uuid, generation])),
            });
            const answers = await ask(method, path, version, body);
            const { theirs, ours } = answers;
            if (theirs.status >= 400) await removeIdleConsumers(upstream);
            if (!isSame(answers) && !isExpected(path, answers))
              differences.push(
                differenceOf(`${at}: ${method} ${path} ${version} ${JSON.stringify(body)}`, theirs, ours),
              );
          }
          const parts = ["", "/inventories", "/usages", "/aggregates", "/traits", "/allocations"];
          for (const path of [
            ...PROVIDERS.flatMap((uuid) => parts.map((part) => `/resource_providers/${uuid}${part}`)),
            ...CONSUMERS.map((uuid) => `/allocations/${uuid}`),
          ]) {
            const { theirs, ours } = await ask("GET", path, "1.39");
            if (!isSame({ theirs, ours })) differences.push(differenceOf(path, theirs, ours));
          }
          expect(differences).toEqual([]);
        } finally {
          await rig.close();
        }
      },
      RUN_MS_MAX,
    );
  },
);

function differenceOf(request: string, theirs: Compared, ours: Compared): Difference {
  return { request, upstream: JSON.stringify(theirs), berth: JSON.stringify(ours) };
}

/** Starts a run with empty tables, apart from the standard names. */
async function emptyTables(upstream: pg.Client): Promise<void> {
  await upstream.query(
    "truncate allocations, consumers, inventories, resource_provider_traits, resource_provider_aggregates",
  );
  await upstream.query("update resource_providers set parent_provider_id = null, root_provider_id = null");
  await upstream.query("delete from resource_providers");
  await upstream.query("delete from traits where name like 'CUSTOM_%'");
  await upstream.query("delete from resource_classes where name like 'CUSTOM_%'");
}

/** Upstream may keep the row of a new consumer whose claim it refused, and then expects its generation; Berth does not. */
async function removeIdleConsumers(upstream: pg.Client): Promise<void> {
  await upstream.query("delete from consumers where uuid not in (select consumer_id from allocations)");
}
