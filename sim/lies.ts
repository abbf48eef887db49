import {
  type AgentMessage,
  type AttemptReport,
  type ConductorMessage,
  FailureKind,
  type Guest,
  GuestState,
  type TreeReport,
} from "../proto/gen/berth/agent.ts";
import { randomUuidOf } from "./determinism.ts";

/** A guest of any host. */
export interface KnownGuest {
  readonly host: string;
  readonly serverUuid: string;
  readonly attemptId: string;
}

/** What an attacker may know of the cell: more than the messages to any agent say. */
export interface CellKnowledge {
  /** All hosts of the cell, with their root providers. */
  readonly hosts: ReadonlyMap<string, string>;
  readonly guests: readonly KnownGuest[];
  /** Guests about which a conductor waits for an answer, with the id of the order if there is one. */
  readonly awaited: readonly (KnownGuest & { readonly orderId: string })[];
}

type Body = NonNullable<AgentMessage["body"]>;

const STATES = [
  GuestState.GUEST_STATE_BUILDING,
  GuestState.GUEST_STATE_PREPARED,
  GuestState.GUEST_STATE_RUNNING,
  GuestState.GUEST_STATE_STOPPED,
  GuestState.GUEST_STATE_PAUSED,
  GuestState.GUEST_STATE_SUSPENDED,
  GuestState.GUEST_STATE_RESCUED,
];
/** Revisions that a guest may pretend to have obeyed: outdated ones, later ones, the greatest that is believed, and an impossible one. */
const REVISIONS = [0, 1, 1_000, 1_000_000_000, 1_999_999_999, 4_000_000_000];
const SELECTIONS = ["0", "1", "2", "7", "999999", "-1", ""];
const CAUSES = ["", "", "shut-down", "crashed", "host-restarted", "halted-with-host"];
const REFUSED = "the hypervisor refused";

/** Makes up false messages of an agent. Everything is drawn from `random`. */
export class Lies {
  readonly hosts: readonly string[];
  readonly #knowledge: () => CellKnowledge;
  readonly #random: () => number;
  #tree: TreeReport | null = null;

  constructor(options: {
    readonly hosts: readonly string[];
    readonly knowledge: () => CellKnowledge;
    readonly random: () => number;
  }) {
    this.hosts = options.hosts;
    this.#knowledge = options.knowledge;
    this.#random = options.random;
  }

  /** What is said instead of a true message: nothing, its contrary, or both in either order. */
  about(message: AgentMessage): AgentMessage[] {
    const { body } = message;
    if (body?.$case === "tree") this.#tree = body.value;
    const contrary = body === undefined ? null : this.#contrary(body);
    if (contrary === null) return [message];
    return this.#pick([[], [{ body: contrary }], [message, { body: contrary }], [{ body: contrary }, message]]);
  }

  /** The answer to an order that is not carried out, or null when nothing has to be answered. */
  inTheAgentsName(order: NonNullable<ConductorMessage["body"]>): AgentMessage | null {
    switch (order.$case) {
      case "build": {
        const { host, attemptId, server } = order.value;
        const name = { host, attemptId, serverUuid: server?.uuid ?? "" };
        return { body: { $case: "attempt", value: report(name, GuestState.GUEST_STATE_PREPARED) } };
      }
      case "start":
        return { body: { $case: "attempt", value: report(order.value, GuestState.GUEST_STATE_RUNNING) } };
      case "power":
      case "handOff": {
        const { host, serverUuid, attemptId, orderId } = order.value;
        return { body: { $case: "ordered", value: { host, serverUuid, attemptId, orderId, failed: "" } } };
      }
      case "destroy":
        return { body: { $case: "destroyed", value: { ...order.value, failed: "" } } };
      default:
        return null;
    }
  }

  /** A message that nobody asked for, mostly about guests and hosts of others, and often the answer that a conductor waits for. */
  unasked(): AgentMessage {
    const awaited = this.#random() < 0.5 ? this.#pick(this.#knowledge().awaited) : undefined;
    const name = awaited ?? {
      ...this.#someGuest(),
      host: this.#someHost(),
      orderId: `${randomUuidOf(this.#random)}/1`,
    };
    const { host, serverUuid, attemptId, orderId } = name;
    const failed = this.#pick(["", REFUSED]);
    const answers: (() => Body)[] = [
      () => ({ $case: "attempt", value: report(name, this.#pick(STATES)) }),
      () => ({ $case: "attempt", value: report(name, GuestState.GUEST_STATE_FAILED) }),
      () => ({ $case: "destroyed", value: { host, serverUuid, attemptId, failed } }),
      () => ({ $case: "destroyed", value: { host, serverUuid, attemptId: "", failed } }),
      () => ({ $case: "ordered", value: { host, serverUuid, attemptId, orderId, failed } }),
    ];
    if (awaited !== undefined) return { body: this.#pick(answers)() };
    const bodies: (() => Body)[] = [
      ...answers,
      () => ({ $case: "stopped", value: { host: name.host, guest: this.#invented(name) } }),
      () => ({ $case: "guests", value: { host: name.host, query: this.#upTo(1_000), guests: [this.#invented(name)] } }),
      () => this.#foreignTree(name.host),
    ];
    return { body: this.#pick(bodies)() };
  }

  #contrary(body: Body): Body | null {
    switch (body.$case) {
      case "attempt": {
        const isFailed = body.value.state === GuestState.GUEST_STATE_FAILED;
        const state = isFailed ? GuestState.GUEST_STATE_PREPARED : GuestState.GUEST_STATE_FAILED;
        return { $case: "attempt", value: report(body.value, state) };
      }
      case "ordered":
        return { $case: "ordered", value: { ...body.value, failed: body.value.failed === "" ? REFUSED : "" } };
      case "destroyed":
        return { $case: "destroyed", value: { ...body.value, failed: body.value.failed === "" ? REFUSED : "" } };
      case "guests":
        return { $case: "guests", value: { ...body.value, guests: this.#distorted(body.value.guests) } };
      case "hello": {
        const hosts = body.value.hosts.map((one) => ({ ...one, guests: this.#distorted(one.guests) }));
        const others = this.#random() < 0.5 ? [{ host: this.#someHost(), guests: [], incarnation: "" }] : [];
        return { $case: "hello", value: { ...body.value, hosts: [...hosts, ...others] } };
      }
      case "tree":
        return this.#foreignTree(this.#someHost());
      default:
        return null;
    }
  }

  /** A list from which guests are missing, in which they are in other states, and in which there are guests of others. */
  #distorted(guests: readonly Guest[]): Guest[] {
    const kept = guests.filter(() => this.#random() < 0.7);
    const changed = kept.map((guest) => (this.#random() < 0.5 ? this.#invented(guest) : guest));
    const added = Array.from({ length: this.#upTo(3) }, () => this.#invented(this.#someGuest()));
    return [...changed, ...added];
  }

  #invented({ serverUuid, attemptId }: Pick<Guest, "serverUuid" | "attemptId">): Guest {
    const [state, revision, stopCause] = [this.#pick(STATES), this.#pick(REVISIONS), this.#pick(CAUSES)];
    return { serverUuid, attemptId, state, revision, stopCause, files: [], heardRevision: 0, found: false };
  }

  /** A guest of any host, one of a server that exists in another attempt or in one that does not exist, or one that nobody knows. */
  #someGuest(): { readonly host: string; readonly serverUuid: string; readonly attemptId: string } {
    const { guests } = this.#knowledge();
    const nobodys = `${randomUuidOf(this.#random)}/0`;
    const known = this.#pick(guests);
    const draw = this.#random();
    if (known === undefined || draw < 0.1)
      return { host: this.#someHost(), serverUuid: randomUuidOf(this.#random), attemptId: nobodys };
    if (draw < 0.2) return { ...known, attemptId: nobodys };
    const task = known.attemptId.slice(0, known.attemptId.lastIndexOf("/"));
    return draw < 0.4 ? { ...known, attemptId: `${task}/${this.#pick(SELECTIONS)}` } : known;
  }

  #someHost(): string {
    return this.#random() < 0.5
      ? this.#pick(this.hosts)
      : this.#pick([...this.#knowledge().hosts.keys(), ...this.hosts]);
  }

  /** The tree of another host, or a tree that has a provider, or the name, of another host. */
  #foreignTree(host: string): Body {
    const tree = this.#tree;
    if (tree === null) return { $case: "heartbeat", value: {} };
    const roots = this.#knowledge().hosts;
    const stolen = { uuid: this.#pick([...roots.values(), tree.rootProvider]), name: host };
    const child = { ...stolen, parent: tree.rootProvider, inventories: {}, traits: [] };
    return {
      $case: "tree",
      value: this.#pick([
        { ...tree, host },
        { ...tree, rootProvider: stolen.uuid, providers: tree.providers.map((one) => ({ ...one, uuid: stolen.uuid })) },
        { ...tree, providers: [...tree.providers, child] },
        { ...tree, providers: [...tree.providers, { ...child, uuid: randomUuidOf(this.#random) }] },
      ]),
    };
  }

  #upTo(most: number): number {
    return Math.floor(this.#random() * (most + 1));
  }

  #pick<Value>(from: readonly [Value, ...Value[]] | readonly Value[]): Value {
    return from[Math.floor(this.#random() * from.length)] as Value;
  }
}

function report(
  { host, serverUuid, attemptId }: Pick<AttemptReport, "host" | "serverUuid" | "attemptId">,
  state: GuestState,
): AttemptReport {
  const failed = state === GuestState.GUEST_STATE_FAILED;
  const failure = failed ? FailureKind.FAILURE_KIND_RESCHEDULE : FailureKind.FAILURE_KIND_UNSPECIFIED;
  const said = failed ? { reason: REFUSED, nothingLeft: true } : { reason: "" };
  return { host, serverUuid, attemptId, state, failure, ...said, step: "", listensAt: "" };
}
