import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ConductorStream } from "../../core/agent/link.ts";
import { attemptIdOf } from "../../core/tasks/server.ts";
import { type AgentMessage, FailureKind, GuestState } from "../../proto/gen/berth/agent.ts";
import { hostName, providerOf, serverId, taskId } from "../contract/cell-fixtures.ts";
import { eventually } from "../rigs/eventually.ts";
import { SmallCell } from "../rigs/small-cell.ts";

let cell: SmallCell;
beforeEach(async () => {
  cell = await new SmallCell().open();
});
afterEach(() => cell.close());

type Body = NonNullable<AgentMessage["body"]>;

/** An agent of which only the network connection is real. It knows the database, sends whatever a test lets it send, and records what it receives. */
class LyingAgent {
  readonly heard: string[] = [];
  readonly verdicts: string[] = [];
  readonly orders: { readonly host: string; readonly serverUuid: string; attemptId: string; orderId: string }[] = [];
  readonly #stream: ConductorStream;
  closed: string | null = null;

  constructor(id: string, hosts: readonly number[], conductor = "conductor-1") {
    this.#stream = cell.network.dialer().dial(conductor);
    this.#stream.onMessages((messages) => {
      for (const { body } of messages) {
        this.heard.push(body?.$case ?? "");
        if (body?.$case === "tree") this.verdicts.push(body.value.refused);
        if (body?.$case === "power") this.orders.push(body.value);
        if (body?.$case === "welcome") this.#beat(body.value.heartbeatMs);
      }
    });
    this.#stream.onClose((reason) => {
      this.closed = reason;
    });
    this.say({
      $case: "hello",
      value: {
        agentId: id,
        hosts: hosts.map((host) => ({ host: hostName(host), guests: [], incarnation: "memory/0" })),
      },
    });
  }

  say(body: Body): void {
    this.#stream.send({ body });
  }

  welcomed(): Promise<unknown> {
    return eventually("a welcome", () => this.heard.includes("welcome"));
  }

  /** Waits until everything sent so far has been read, since the conductor answers heartbeats in their turn. */
  async read(): Promise<void> {
    const before = this.heard.filter((kind) => kind === "heartbeat").length;
    for (let more = 1; more <= 3; more += 1) {
      this.say({ $case: "heartbeat", value: {} });
      await eventually("an answer", () => this.heard.filter((kind) => kind === "heartbeat").length >= before + more);
    }
  }

  hangUp(): void {
    this.#stream.close("the agent stops");
  }

  #beat(everyMs: number): void {
    const timer = setInterval(() => {
      if (this.#stream.closed) clearInterval(timer);
      else this.say({ $case: "heartbeat", value: {} });
    }, everyMs / 2);
  }
}

const attemptOf = (server: number) => ({ serverUuid: serverId(server), attemptId: attemptIdOf(taskId(server), 0) });

function prepared(host: number, server: number): Body {
  const state = GuestState.GUEST_STATE_PREPARED;
  const failure = FailureKind.FAILURE_KIND_UNSPECIFIED;
  return {
    $case: "attempt",
    value: { host: hostName(host), ...attemptOf(server), state, failure, reason: "", step: "", listensAt: "" },
  };
}

function tree(host: number, root: number, name = hostName(host)): Body {
  const inventory = { total: 1_000, reserved: 0, minUnit: 1, maxUnit: 1_000, stepSize: 1, allocationRatio: 1 };
  const provider = { uuid: providerOf(root), name, parent: "", inventories: { VCPU: inventory }, traits: [] };
  const report = { host: hostName(host), rootProvider: providerOf(root), revision: 1, hypervisor: undefined };
  return { $case: "tree", value: { ...report, providers: [provider] } };
}

/** The tree of the host with one more provider below its root. */
function treeWith(host: number, child: { readonly name: string; readonly uuid: string }): Body {
  const body = tree(host, host);
  if (body.$case !== "tree") throw new Error("not a tree");
  const below = { ...child, parent: body.value.rootProvider, inventories: {}, traits: [] };
  return { $case: "tree", value: { ...body.value, revision: 2, providers: [...body.value.providers, below] } };
}

/** A host that is up and does only what its test says. */
async function mute(host: number): Promise<LyingAgent> {
  const agent = new LyingAgent(`agent-${host}`, [host]);
  await agent.welcomed();
  agent.say(tree(host, host));
  await cell.hostsUp(1);
  return agent;
}

describe("an agent that speaks for a host it does not carry", () => {
  test.each([
    ["without hosts", [], 0],
    ["with a host of its own, in the other's name", [5], 0],
    ["with a host of its own, in its own name", [5], 5],
  ] as const)("%s: it does not bring a server up that nobody has built", async (_, hosts, named) => {
    const { gate } = await cell.startConductor(1);
    const { agent } = await cell.startAgent({ id: "agent-0", hosts: [0] });
    await cell.hostsUp(1);
    await cell.boot(1, [0], { fake: { outcome: "hang" } });
    await eventually("the build to begin", () => agent.guests().length === 1);
    const commits = gate.hold("commitActive");
    const liar = new LyingAgent("liar", hosts);
    await liar.welcomed();
    liar.say(prepared(named, 1));
    await liar.read();
    expect(gate.held("commitActive")).toBe(0);
    commits();
    expect(await cell.server(1)).toMatchObject({ status: "BUILD" });
  });

  test("cannot take the name of a host that has not come up yet", async () => {
    await cell.startConductor(1);
    const liar = await mute(5);
    liar.say(treeWith(5, { name: hostName(0), uuid: providerOf(77) }));
    await eventually("a verdict", () => liar.verdicts.length === 2);
    expect(liar.verdicts[1]).toContain(`must have a name that begins with "${hostName(5)}_"`);
    const host = new LyingAgent("agent-0", [0]);
    await host.welcomed();
    host.say(tree(0, 0));
    await cell.hostsUp(2);
    expect(host.verdicts).toEqual([""]);
  });

  test("cannot release a server's allocation by reporting that its guest is gone", async () => {
    await cell.startConductor(1);
    const host = await mute(0);
    await cell.boot(1, [0]);
    host.say(prepared(0, 1));
    await cell.become(1, "ACTIVE");
    const liar = new LyingAgent("liar", [5]);
    await liar.welcomed();
    await cell.delete(1);
    await eventually("the destroy", () => host.heard.includes("destroy"));
    const gone = (name: string): Body => ({
      $case: "destroyed",
      value: { host: name, serverUuid: serverId(1), attemptId: "", failed: "" },
    });
    for (const name of [hostName(0), hostName(5)]) liar.say(gone(name));
    await liar.read();
    expect([await cell.server(1), await cell.heldOn(1)]).toMatchObject([{ status: "ACTIVE" }, ["host-0"]]);
    host.say(gone(hostName(0)));
    await cell.become(1, "DELETED");
    expect(await cell.heldOn(1)).toEqual([]);
  });

  test("cannot rewrite the other host's tree, under that host's name or under its own", async () => {
    await cell.startConductor(1);
    await cell.startAgent({ id: "agent-0", hosts: [0] });
    await cell.hostsUp(1);
    const before = await cell.ledger.dump();
    const liar = new LyingAgent("liar", [5]);
    await liar.welcomed();
    const lies = [tree(0, 0), tree(5, 0), tree(5, 0, hostName(0)), tree(5, 7, hostName(0))];
    for (const [index, lie] of lies.entries()) {
      liar.say(lie);
      await eventually("a verdict", () => liar.verdicts.length > index);
    }
    expect(liar.verdicts).toEqual([
      "the agent's hello did not name the host",
      expect.stringContaining("is the root of host host-0"),
      expect.stringContaining("must have the name of its host, host-5"),
      expect.stringContaining("must have the name of its host, host-5"),
    ]);
    expect(await cell.ledger.dump()).toEqual(before);
  });
});

describe("an agent that names a host which another agent carries", () => {
  test("is refused as long as the other agent's connection lives, with the name of the agent that must stop", async () => {
    await cell.startConductor(1);
    await cell.startAgent({ id: "agent-0", hosts: [0] });
    await cell.hostsUp(1);
    const liar = new LyingAgent("liar", [5, 0]);
    const reason = await eventually("the refusal", () => liar.closed);
    expect(reason).toMatch(/^host host-0 belongs to agent agent-0, which is connected: stop that agent/);
    await cell.boot(1, [0]);
    await cell.become(1, "ACTIVE");
    await eventually("the guest to run", () => cell.runsOn(1)[0] === hostName(0));
    expect(liar.heard).toEqual([]);
  });

  test("is also refused by the conductors that the other agent has not reached, and leaves them to it", async () => {
    await cell.startConductor(1);
    await cell.startConductor(2);
    const first = await cell.startAgent({ id: "agent-0", hosts: [0], conductors: [1] });
    await cell.hostsUp(1);
    const liar = new LyingAgent("liar", [0], "conductor-2");
    liar.say(tree(0, 0));
    const reason = await eventually("the refusal", () => liar.closed);
    expect(reason).toMatch(/^host host-0 belongs to agent agent-0, which a conductor of the cell has seen \d+ ms ago/);
    expect(await cell.store.hosts()).toMatchObject([{ agentId: "agent-0", up: true }]);
    expect(first.agent.ready).toBe(true);
  });

  test("at another conductor at the same moment: one of the two gets the host, and the other one disconnects", async () => {
    const gates = [(await cell.startConductor(1)).gate, (await cell.startConductor(2)).gate];
    const puts = gates.map((gate) => gate.hold("hostsUp"));
    const agents = [new LyingAgent("a", [0], "conductor-1"), new LyingAgent("b", [0], "conductor-2")];
    for (const agent of agents) {
      await agent.welcomed();
      agent.say(tree(0, 0));
    }
    await eventually("both to be about to have the host", () => gates.every((gate) => gate.held("hostsUp") > 0));
    for (const put of puts) put();
    await eventually("one to give way", () => agents.some((agent) => agent.closed !== null));
    const [keeper] = await cell.store.hosts();
    expect(agents.map((agent) => agent.closed === null)).toEqual(["a", "b"].map((id) => id === keeper?.agentId));
  });

  test("gives way when the other agent has taken over the host after its own report was accepted", async () => {
    await cell.startConductor(1);
    const { gate } = await cell.startConductor(2);
    const put = gate.hold("hostsUp");
    const later = new LyingAgent("later", [0], "conductor-2");
    await later.welcomed();
    later.say(tree(0, 0));
    await eventually("the later agent to be about to have the host", () => gate.held("hostsUp") > 0);
    const earlier = new LyingAgent("earlier", [0], "conductor-1");
    await earlier.welcomed();
    earlier.say(tree(0, 0));
    await eventually("the earlier agent's verdict", () => earlier.verdicts.length > 0);
    expect(earlier.verdicts).toEqual([""]);
    put();
    expect(await eventually("the earlier agent to give way", () => earlier.closed)).toMatch(/belongs to agent later/);
    expect([await cell.store.hosts(), later.closed]).toMatchObject([[{ agentId: "later", up: true }], null]);
  });

  test("is accepted when the other agent has hung up, because an agent may have been renamed", async () => {
    await cell.startConductor(1, { unseenMs: 1_500 });
    const disk = { records: [] };
    const first = await cell.startAgent({ id: "agent-0", hosts: [0], disk });
    await cell.hostsUp(1);
    await first.agent.close();
    cell.forget(first.driver);
    await cell.startAgent({ id: "renamed", hosts: [0], disk });
    await eventually("the host to be the new agent's", async () =>
      (await cell.store.hosts()).some((host) => host.agentId === "renamed" && host.up),
    );
    await cell.boot(1, [0]);
    await cell.become(1, "ACTIVE");
  });

  test("is accepted when the other agent is silent for three heartbeats, although its connection is still open", async () => {
    await cell.startConductor(1, { heartbeatMs: 100 });
    const silent = cell.network.dialer().dial("conductor-1");
    let end: string | null = null;
    silent.onClose((reason) => {
      end = reason;
    });
    silent.send({
      body: {
        $case: "hello",
        value: { agentId: "silent", hosts: [{ host: hostName(0), guests: [], incarnation: "" }] },
      },
    });
    await cell.startAgent({ id: "agent-0", hosts: [0] });
    await cell.hostsUp(1);
    expect(end).toBe("the agent was silent");
    expect(await cell.store.hosts()).toMatchObject([{ agentId: "agent-0" }]);
  });

  test("replaces its old connection when it dials again under its own id", async () => {
    await cell.startConductor(1);
    const [first, second] = [new LyingAgent("agent-0", [0]), new LyingAgent("agent-0", [0])];
    await second.welcomed();
    expect(await eventually("the first to be closed", () => first.closed)).toBe("the agent connected again");
  });

  test("is refused when it names a host or a guest by text that the database cannot store, and the database is not asked", async () => {
    const { gate } = await cell.startConductor(1);
    gate.hold("sightings");
    const liar = new LyingAgent("liar\0", [5]);
    expect(await eventually("the refusal", () => liar.closed)).toBe('"liar\\u0000" is not an agent id');
    const state = { host: `${hostName(5)}\0`, guests: [], incarnation: "" };
    const other = cell.network.dialer().dial("conductor-1");
    let end: string | null = null;
    other.onClose((reason) => {
      end = reason;
    });
    other.send({ body: { $case: "hello", value: { agentId: "liar", hosts: [state] } } });
    expect(await eventually("the refusal", () => end)).toBe('"host-5\\u0000" is not the name of a host');
    expect(gate.held("sightings")).toBe(0);
  });

  test("may say hello only once on a stream", async () => {
    await cell.startConductor(1);
    const liar = new LyingAgent("liar", [5]);
    await liar.welcomed();
    liar.say({
      $case: "hello",
      value: { agentId: "another", hosts: [{ host: hostName(6), guests: [], incarnation: "" }] },
    });
    expect(await eventually("the end", () => liar.closed)).toBe("a stream may send only one hello");
  });
});

test("counts as the answer to an order only when it comes from the asked host", async () => {
  await cell.startConductor(1);
  const host = await mute(0);
  await cell.boot(1, [0]);
  host.say(prepared(0, 1));
  await cell.become(1, "ACTIVE");
  const liar = new LyingAgent("liar", [5]);
  await liar.welcomed();
  await cell.operate({ kind: "stop", server: 1 });
  const order = await eventually("the order", () => host.orders[0]);
  for (const name of [hostName(5), hostName(0)])
    liar.say({ $case: "ordered", value: { ...order, host: name, failed: "" } });
  await liar.read();
  expect(await cell.server(1)).toMatchObject({ status: "ACTIVE", taskState: "powering-off" });
  host.say({ $case: "ordered", value: { ...order, failed: "" } });
  await cell.become(1, "SHUTOFF");
});
