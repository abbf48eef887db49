import { randomUUID } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { MemoryNetworking } from "../../adapters/memory/memory-networking.ts";
import type { PluggedPort } from "../../core/stores/cell/plug-store.ts";
import type { NeutronPort } from "../../core/stores/networking.ts";
import { NetworkingError } from "../../core/stores/networking-error.ts";
import { StoreError } from "../../core/stores/store-error.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { serverId } from "../../test/contract/cell-fixtures.ts";
import { OWN_NETWORK, putContractNetworks } from "../../test/contract/networking.contract.ts";
import { eventually } from "../../test/rigs/eventually.ts";
import { type PluggingOutcome, VifPlugging } from "./vif-plugging.ts";

const TIMEOUT_MS = 10_000;
const SETTINGS = { vifPluggingTimeoutMs: TIMEOUT_MS, vifPluggingIsFatal: true, liveMigrationAwaitsVifs: true };
const pluggedPorts = async (attemptIds: readonly string[]) => attemptIds.map(() => []);

/** So many servers wait on one host for their ports, which are DOWN, and the looks at them in Neutron are counted. */
class Waiting {
  readonly clock = new ManualClock();
  readonly outcomes = new Map<string, PluggingOutcome>();
  /** The number of servers in each look. */
  readonly looks: number[] = [];
  mostLooksAtOnce = 0;
  isSilent = false;
  /** Neutron's `pagination_max_limit`. */
  portsMax = Number.POSITIVE_INFINITY;
  readonly #neutron = new MemoryNetworking({ newId: randomUUID });
  readonly #servers: number;

  constructor(servers: number) {
    this.#servers = servers;
    putContractNetworks(this.#neutron);
    let open = 0;
    const ports: MemoryNetworking["ports"] = async (filter, by) => {
      this.looks.push(filter.deviceIds?.length ?? 0);
      open += 1;
      this.mostLooksAtOnce = Math.max(this.mostLooksAtOnce, open);
      await setImmediate();
      open -= 1;
      if (this.isSilent) throw new NetworkingError("unreachable", "Neutron does not answer");
      return (await this.#neutron.ports(filter, by)).slice(0, this.portsMax);
    };
    const networking = Object.assign(Object.create(this.#neutron), { ports });
    const plugging = new VifPlugging({ networking, store: { pluggedPorts }, clock: this.clock }, SETTINGS);
    for (let server = 0; server < servers; server += 1) {
      const uuid = serverId(server);
      const port = this.#put({ deviceId: uuid, host: "host-0", status: "DOWN", fixedAddresses: [] });
      const own = { portId: port.id, networkId: OWN_NETWORK, tag: "", networkName: "own", macAddress: port.macAddress };
      const ports = [{ ...own, addresses: [], floatingAddresses: [], slot: 0 }];
      plugging.wait({ uuid, ports }, "host-0", () => true)?.then((outcome) => void this.outcomes.set(uuid, outcome));
    }
  }

  /** Neutron's agent sets the status of the ports of a server. */
  set(server: number, status: string): void {
    for (const port of this.#neutron.all()) if (port.deviceId === serverId(server)) this.#put({ ...port, status });
  }

  /** Waits until all servers that still wait have looked again. */
  async allLooked(): Promise<void> {
    await eventually("each server to look or to end", () => this.clock.pending + this.outcomes.size === this.#servers);
  }

  #put(port: Partial<NeutronPort>): NeutronPort {
    return this.#neutron.putPort({ projectId: "one", networkId: OWN_NETWORK, ...port });
  }
}

test("servers that wait for their ports at the same time are looked up together, one list after the other", async () => {
  const waiting = new Waiting(400);
  await waiting.allLooked();
  expect(waiting.looks).toEqual([150, 150, 100]);
  waiting.set(7, "ACTIVE");
  waiting.set(399, "ERROR");
  waiting.clock.advance(500);
  await waiting.allLooked();
  expect(waiting.looks).toHaveLength(6);
  expect(waiting.mostLooksAtOnce).toBe(1);
  expect([...waiting.outcomes]).toEqual([
    [serverId(7), { kind: "plugged" }],
    [serverId(399), { kind: "failed", reason: expect.stringContaining("its status is ERROR"), final: false }],
  ]);
});

test("a Neutron that is silent for a while fails none of the servers whose ports it has", async () => {
  const waiting = new Waiting(3);
  waiting.isSilent = true;
  await waiting.allLooked();
  expect(waiting.outcomes.size).toBe(0);
  waiting.isSilent = false;
  for (const server of [0, 1, 2]) waiting.set(server, "ACTIVE");
  waiting.clock.advance(500);
  await waiting.allLooked();
  expect([...waiting.outcomes.values()]).toEqual(Array(3).fill({ kind: "plugged" }));
});

test("a port that a cut list does not show is not missing, and one that the list of its server alone does not show is", async () => {
  const waiting = new Waiting(20);
  waiting.portsMax = 5;
  await waiting.allLooked();
  expect(waiting.looks).toEqual([20, ...Array.from({ length: 15 }, () => 1)]);
  expect(waiting.outcomes.size).toBe(0);
  waiting.portsMax = 0;
  waiting.clock.advance(500);
  await waiting.allLooked();
  expect([...waiting.outcomes.values()]).toEqual(
    Array.from({ length: 20 }, () => ({
      kind: "failed",
      reason: expect.stringContaining("could not be found"),
      final: false,
    })),
  );
});

describe("live migrations", () => {
  /** What the cell's database says about the ports of each attempt. */
  let reported: Map<string, PluggedPort[]>;
  let questions: string[][];
  let isDown: boolean;
  let clock: ManualClock;
  beforeEach(() => {
    [reported, questions, isDown, clock] = [new Map(), [], false, new ManualClock()];
  });
  const waitAhead = (attemptId: string, ports: readonly string[], settings: Partial<typeof SETTINGS> = {}) => {
    const store = {
      pluggedPorts: async (attemptIds: readonly string[]) => {
        questions.push([...attemptIds]);
        if (isDown) throw new StoreError("unavailable", "plugged_ports", new Error("the connection was lost"));
        return attemptIds.map((id) => reported.get(id) ?? []);
      },
    };
    const plugging = new VifPlugging({ networking: null, store, clock }, { ...SETTINGS, ...settings });
    return { plugging, waiting: plugging.waitAhead(ports, { host: "host-1", attemptId }, () => true) };
  };
  const asked = (times: number) =>
    eventually(`${times} questions`, () => questions.length === times && clock.pending > 0);

  test("ask nobody while none waits, and together with one question while some do", async () => {
    const { plugging, waiting } = waitAhead("t/0", ["a"]);
    const other = plugging.waitAhead(["b"], { host: "host-2", attemptId: "u/0" }, () => true);
    await asked(1);
    expect(questions).toEqual([["t/0", "u/0"]]);
    reported.set("t/0", [{ portId: "a", isFailed: false }]);
    reported.set("u/0", [{ portId: "b", isFailed: false }]);
    await eventually("both waits", () => clock.pending === 2);
    clock.advance(500);
    expect(await Promise.all([waiting, other])).toEqual([{ kind: "plugged" }, { kind: "plugged" }]);
    clock.advance(60_000);
    expect([questions.length, clock.pending]).toEqual([2, 0]);
  });

  test("go on at once when Neutron has reported before, and wait through a database that is away", async () => {
    isDown = true;
    reported.set("t/0", [{ portId: "a", isFailed: false }]);
    const { waiting } = waitAhead("t/0", ["a"]);
    await asked(1);
    isDown = false;
    clock.advance(500);
    expect(await waiting).toEqual({ kind: "plugged" });
  });

  test.each([
    [true, { kind: "failed", reason: expect.stringContaining("could not connect port b on host-1"), final: false }],
    [false, { kind: "plugged" }],
  ])(
    "whose port Neutron could not connect end with the attempt, if that is fatal: %s",
    async (vifPluggingIsFatal, end) => {
      reported.set("t/0", [
        { portId: "a", isFailed: false },
        { portId: "b", isFailed: true },
      ]);
      expect(await waitAhead("t/0", ["a", "b"], { vifPluggingIsFatal }).waiting).toEqual(end);
    },
  );

  test("are not held up without a timeout, without ports, or if an operator says so", () => {
    expect(waitAhead("t/0", ["a"], { vifPluggingTimeoutMs: 0 }).waiting).toBeNull();
    expect(waitAhead("t/0", []).waiting).toBeNull();
    expect(waitAhead("t/0", ["a"], { liveMigrationAwaitsVifs: false }).waiting).toBeNull();
    expect(questions).toEqual([]);
  });
});
