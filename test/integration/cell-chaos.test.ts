import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { FakeScript } from "../../services/compute-agent/fake-script.ts";
import type { MemoryDisk } from "../../services/compute-agent/memory-journal.ts";
import { eventually } from "../rigs/eventually.ts";
import { type AgentProcess, type ConductorProcess, SmallCell } from "../rigs/small-cell.ts";

const CONDUCTORS = [1, 2];
const AGENTS = [1, 2, 3];
const HOSTS_OF_AGENT = 3;
const ROUNDS = 12;
const SERVERS_A_ROUND = 5;

let cell: SmallCell;
beforeEach(async () => {
  cell = await new SmallCell().open();
});
afterEach(() => cell.close());

/** Numbers from 0 up to `below`, always the same for the same seed. */
function diceOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** The processes of a cell, which the test kills and restarts. */
class Processes {
  readonly conductors = new Map<number, ConductorProcess>();
  readonly agents = new Map<number, AgentProcess>();
  readonly #disks = new Map<number, MemoryDisk>();

  async startConductor(index: number): Promise<void> {
    this.conductors.set(index, await cell.startConductor(index, { conductorId: randomUUID() }));
  }

  async startAgent(index: number): Promise<void> {
    const disk = this.#disks.get(index) ?? { records: [] };
    this.#disks.set(index, disk);
    const hosts = Array.from({ length: HOSTS_OF_AGENT }, (_, host) => (index - 1) * HOSTS_OF_AGENT + host + 1);
    this.agents.set(
      index,
      await cell.startAgent({ id: `agent-${index}`, hosts, conductors: CONDUCTORS, disk, vcpus: 64 }),
    );
  }

  async killConductor(index: number): Promise<void> {
    await this.conductors.get(index)?.kill();
    await this.startConductor(index);
  }

  async killAgent(index: number): Promise<void> {
    const agent = this.agents.get(index);
    await agent?.agent.close();
    if (agent !== undefined) cell.forget(agent.driver);
    await this.startAgent(index);
  }
}

const SCRIPTS: readonly FakeScript[] = [
  {},
  { duration_ms: 30 },
  { outcome: "reschedule", first: 1, duration_ms: 10 },
  { outcome: "reschedule", probability: 0.7 },
  { outcome: "abort", probability: 0.5 },
  { outcome: "lie", first: 1 },
];

test.each([1, 2, 3, 4])(
  "whichever processes are killed, every server ends with one home or none (seed %i)",
  async (seed) => {
    const dice = diceOf(seed);
    const processes = new Processes();
    for (const index of CONDUCTORS) await processes.startConductor(index);
    for (const index of AGENTS) await processes.startAgent(index);
    await cell.hostsUp(AGENTS.length * HOSTS_OF_AGENT);

    const faults = [
      () => processes.killConductor(CONDUCTORS[dice(CONDUCTORS.length)]!),
      () => processes.killAgent(AGENTS[dice(AGENTS.length)]!),
      async () => processes.agents.get(AGENTS[dice(AGENTS.length)]!)?.agent.loseConnections(),
      async () => {},
    ];
    const servers: number[] = [];
    const endedCount = async () =>
      (await Promise.all(servers.map((server) => cell.server(server)))).filter(({ status }) => status !== "BUILD")
        .length;
    for (let round = 0; round < ROUNDS; round += 1) {
      for (let count = 0; count < SERVERS_A_ROUND; count += 1) {
        const server = servers.length + 1;
        const first = dice(9);
        const hosts = [first + 1, ((first + 4) % 9) + 1, ((first + 7) % 9) + 1];
        await cell.boot(server, hosts, { fake: SCRIPTS[dice(SCRIPTS.length)]!, lost: dice(10) === 0 });
        servers.push(server);
      }
      const ended = await endedCount();
      await faults[dice(faults.length)]!();
      if (dice(2) === 0) await cell.delete(servers[dice(servers.length)]!);
      await eventually(
        "a build to end",
        async () => (await endedCount()) > ended || (await endedCount()) === servers.length,
      );
    }

    await eventually("every server to end", async () => {
      for (const server of servers) expect(cell.runsOn(server).length).toBeLessThanOrEqual(1);
      const all = await Promise.all(servers.map((server) => cell.server(server)));
      return all.every((server) => server.status !== "BUILD" && server.taskState === null);
    });
    for (const server of servers) {
      const { status, host } = await cell.server(server);
      const home = status === "ACTIVE" ? [host] : [];
      await eventually(
        `server ${server} (${status}) to be only at home`,
        () => `${cell.existsOn(server)}` === `${home}` && `${cell.runsOn(server)}` === `${home}`,
      );
      expect(await cell.heldOn(server)).toEqual(home);
    }
  },
);
