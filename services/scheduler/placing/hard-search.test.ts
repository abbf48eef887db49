import { Registry } from "prom-client";
import { afterEach, beforeEach, expect, test } from "vitest";
import { DEFAULT_SEARCH_LIMITS } from "../../../core/candidates/search-budget.ts";
import { providerUuid, resourceClass } from "../../../core/ledger/ids.ts";
import type { ProviderSpec } from "../../../core/ledger/provider-tree.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { hostName, numbered, providerOf, serverId } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { SchedulerRig } from "../../../test/rigs/scheduler-rig.ts";

const BANDWIDTH = "NET_BW_EGR_KILOBIT_PER_SEC";
const HOSTS = 400;
/** Even amounts that can only fit if they fill two NICs of an odd size completely, which is impossible. */
const AMOUNTS = [...Array.from({ length: 15 }, (_, index) => index + 1), 17].map((number) => 2 * number * number);
const OF_NIC = 1_529;

let rig: SchedulerRig;
beforeEach(() => {
  rig = new SchedulerRig();
});
afterEach(() => rig.close());

function provider(uuid: string, parent: string | null, name: string, total: number): ProviderSpec {
  const inventory = { total, reserved: 0, minUnit: 1, maxUnit: total, stepSize: 1, allocationRatio: 1 };
  return {
    uuid: providerUuid(uuid),
    name: uuid,
    parent: parent === null ? null : providerUuid(parent),
    expected: "any",
    inventories: new Map([[resourceClass(name), inventory]]),
    traits: new Set(),
  };
}

/** Adds hosts with two NICs each, all of them different. */
async function withNics() {
  const cell = await rig.addCell("one");
  const hosts = Array.from({ length: HOSTS }, (_, index) => index + 1);
  await cell.ledger.putTrees(
    hosts.map((host) => {
      const root = providerOf(host);
      const nics = [1, 2].map((nic) => provider(numbered(0xa0 + nic, host), root, BANDWIDTH, OF_NIC));
      return { root: providerUuid(root), providers: [provider(root, null, "VCPU", 10 + host), ...nics] };
    }),
  );
  await cell.store.hostsUp(
    "agent",
    hosts.map((host) => ({ name: hostName(host), rootProvider: providerOf(host) })),
  );
  return cell;
}

function hard(server: number, amounts = AMOUNTS): ServerSpec {
  const groups = amounts.map((amount, index) => [`resources${index + 1}:${BANDWIDTH}`, `${amount}`]);
  return rig.wants(server, 1, { ...Object.fromEntries(groups), group_policy: "none" });
}

test("a request whose groups are too hard to combine is given up with that reason, and others are placed meanwhile", async () => {
  const cell = await withNics();
  const registry = new Registry();
  await rig.start([cell.open()], { registry });
  let turns = 0;
  let isOver = false;
  const count = () => {
    if (isOver) return;
    turns += 1;
    setImmediate(count);
  };
  setImmediate(count);
  await rig.accept([hard(1)]);
  await eventually("the request to end", () => rig.acked.length === 1);
  isOver = true;
  const [record] = await rig.apiStore.requests([serverId(1)]);
  expect(record).toMatchObject({ state: "failed" });
  expect(record?.fault).toMatch(
    /Of 400 hosts: \d+ not searched, because the search was given up: combining the request groups took too many steps; \d+ request groups do not fit together\./,
  );
  expect(turns).toBeGreaterThanOrEqual(DEFAULT_SEARCH_LIMITS.steps / DEFAULT_SEARCH_LIMITS.stepsPerSlice - 1);
  expect(await registry.getSingleMetricAsString("berth_scheduler_searches_given_up_total")).toContain(
    'berth_scheduler_searches_given_up_total{limit="steps"} 1',
  );
});

test("a request of the same shape that fits is placed, even right after others were given up", async () => {
  const cell = await withNics();
  await rig.start([cell.open()]);
  await rig.accept([
    hard(1),
    hard(2),
    hard(
      3,
      AMOUNTS.map((amount) => amount / 2),
    ),
  ]);
  await eventually("the requests to end", () => rig.acked.length === 3);
  const states = await Promise.all([1, 2, 3].map((server) => rig.state(serverId(server))));
  expect(states).toEqual(["failed", "failed", "dispatched one"]);
});
