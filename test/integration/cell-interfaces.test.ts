import { afterEach, beforeEach, expect, test } from "vitest";
import { cellConsolesSubject } from "../../adapters/nats/streams.ts";
import { patchChange } from "../../core/tasks/patch-change.ts";
import { guestInterfaces } from "../../core/tasks/port-change.ts";
import { ConsoleAnswer, ConsoleQuestion } from "../../proto/gen/berth/cell.ts";
import type { ServerPort } from "../../proto/gen/berth/shared.ts";
import { overriding } from "../../runtime/overriding.ts";
import { ASKS_NOTHING } from "../../services/api/cells/console-question.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import type { FakeDriver } from "../../services/compute-agent/fake-driver.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

const NEVER = new AbortController().signal;
let cell: SmallCell;
beforeEach(async () => {
  cell = await new SmallCell().open();
});
afterEach(() => cell.close());

const portOf = (portId: string): ServerPort => ({
  ...{ portId, networkId: "n", tag: "", networkName: "", addresses: [], floatingAddresses: [], slot: 0 },
});
const [ONE, OTHER] = [portOf("one"), portOf("other")];

/** Server 1 runs on host 0. */
async function start(changes: (driver: FakeDriver) => Partial<Driver> = () => ({})) {
  await cell.startConductor(1);
  const before = (driver: FakeDriver): Driver => overriding<Driver>(driver, changes(driver));
  const { driver } = await cell.startAgent({ id: "agent-0", hosts: [0], before });
  await cell.hostsUp(1);
  await cell.boot(1, [0]);
  await cell.become(1, "ACTIVE");
  await eventually("the guest to run", () => cell.runsOn(1).length === 1);
  const interfaces = () => driver.guests()[0]?.interfaces ?? [];
  return { driver, interfaces };
}

/** Gives server 1 these interfaces, as an api does. `older` is by how much the revision is older than the server. */
async function set(ports: readonly ServerPort[], { older = 0, attempt = "" } = {}): Promise<ConsoleAnswer["answer"]> {
  const { host, attemptId, uuid: serverUuid, revision } = await cell.server(1);
  const guest = { host: host ?? "", serverUuid, attemptId: attempt || (attemptId ?? "") };
  const question = { ...ASKS_NOTHING, ...guest, interfaces: guestInterfaces(ports), revision: revision - older };
  const bytes = ConsoleQuestion.encode(question).finish();
  return ConsoleAnswer.decode(await cell.ask(cellConsolesSubject("cell-1"), bytes, { timeoutMs: 30_000 })).answer;
}
const SET = { $case: "interfacesSet", value: true };

test("a guest gets exactly the interfaces that it is to have, also when it is told twice", async () => {
  const { interfaces } = await start();
  for (const ports of [[ONE], [ONE, OTHER], [ONE, OTHER], [OTHER], []]) {
    expect(await set(ports)).toEqual(SET);
    expect(interfaces()).toEqual(ports.map(({ portId }) => portId));
  }
});

test("a guest that has heard of a later revision refuses the interfaces of an earlier one", async () => {
  const { interfaces } = await start();
  expect(await set([ONE, OTHER])).toEqual(SET);
  expect(await set([ONE], { older: 1 })).toEqual({ $case: "interfacesRefused", value: "a later order was given" });
  expect(interfaces()).toEqual(["one", "other"]);
});

test("interfaces that come after a stop was ordered, with a revision of before, are refused behind it", async () => {
  const { interfaces } = await start();
  await set([ONE]);
  const { revision: before } = await cell.server(1);
  await cell.operate({ server: 1, kind: "stop" });
  await cell.become(1, "SHUTOFF");
  const { revision } = await cell.server(1);
  expect(await set([], { older: revision - before })).toMatchObject({ $case: "interfacesRefused" });
  expect(interfaces()).toEqual(["one"]);
});

test("a guest that does not exist, a driver without interfaces, and one that fails are told apart", async () => {
  let capabilities: Driver["capabilities"] = new Set(["interfaces"] as const);
  let isBroken = true;
  const { interfaces } = await start((driver) => ({
    get capabilities() {
      return capabilities;
    },
    setInterfaces: (guest, wanted, signal) =>
      isBroken ? Promise.reject(new Error("the slot is broken")) : driver.setInterfaces(guest, wanted, signal),
  }));
  expect(await set([ONE], { attempt: "other/0" })).toEqual({ $case: "absent", value: true });
  expect(await set([ONE])).toEqual({ $case: "interfacesRefused", value: "the slot is broken" });
  isBroken = false;
  expect(await set([ONE])).toEqual(SET);
  capabilities = new Set();
  expect(await set([])).toEqual({ $case: "unavailable", value: true });
  expect(interfaces()).toEqual(["one"]);
});

test("a guest whose interfaces differ from its server's ports gets those of the ports when it is started", async () => {
  const { driver, interfaces } = await start();
  const [name] = driver.guests();
  if (name === undefined) throw new Error("there is a guest");
  await driver.setInterfaces(name, guestInterfaces([ONE]).interfaces, NEVER);
  await cell.operate({ server: 1, kind: "stop" });
  await cell.become(1, "SHUTOFF");
  expect(interfaces()).toEqual(["one"]);
  await cell.operate({ server: 1, kind: "start" });
  await cell.become(1, "ACTIVE");
  expect(interfaces()).toEqual([]);
});

test("a hard reboot gives a guest the interfaces of its server's ports, and a soft one leaves it those that it has", async () => {
  const { driver, interfaces } = await start();
  const [name] = driver.guests();
  if (name === undefined) throw new Error("there is a guest");
  await driver.setInterfaces(name, guestInterfaces([ONE]).interfaces, NEVER);
  const rebooted = async (kind: "reboot" | "hard-reboot") => {
    await cell.operate({ server: 1, kind });
    await eventually("the end of the reboot", async () => (await cell.server(1)).taskState === null);
  };
  await rebooted("reboot");
  expect(interfaces()).toEqual(["one"]);
  await rebooted("hard-reboot");
  expect(interfaces()).toEqual([]);
});

test("a guest gets the interface of a port whose api or agent ended before the guest was told, and keeps one that its server's row does not name", async () => {
  const { driver, interfaces } = await start();
  const [name] = driver.guests();
  if (name === undefined) throw new Error("there is a guest");
  await driver.setInterfaces(name, guestInterfaces([OTHER]).interfaces, NEVER);
  const { uuid, revision, spec } = await cell.server(1);
  const [holding] = await cell.store.holdings([uuid]);
  if (holding == null) throw new Error("the server has allocations");
  const change = patchChange(spec, holding, { more: [], less: [] });
  const write = { serverUuid: uuid, revision, change, spec: { ...spec, ports: [ONE] } };
  expect(await cell.store.patchHoldings([write])).toMatchObject([{ kind: "patched" }]);
  await eventually("the interface", () => interfaces().length === 2);
  expect(interfaces()).toEqual(["other", "one"]);
});
