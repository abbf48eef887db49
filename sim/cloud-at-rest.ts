import { auditCloud, capacityFactsOf } from "../core/audit/audit-cloud.ts";
import { checkCapacity } from "../core/audit/check-capacity.ts";
import { checkGroups } from "../core/audit/check-groups.ts";
import { checkOrphans } from "../core/audit/check-orphans.ts";
import type { CloudFacts } from "../core/audit/facts.ts";
import { GUEST_IN_QUARANTINE } from "../core/stores/cell/quarantine.ts";
import { isLiveMove, OPERATION_KINDS } from "../core/tasks/operation-kinds.ts";
import type { SimCloud } from "./sim-cloud.ts";
import { calledOffInVain } from "./task-outcomes.ts";
import { uuidsIn, type WaitingForOperator } from "./waiting-for-operator.ts";
import type { Workload } from "./workload.ts";
import type { SimFinding } from "./world.ts";

/** The changes that are moves, with the kind of each move. */
const MOVES: Readonly<Record<string, readonly string[]>> = {
  ...{ resize: ["resize"], migrate: ["migrate"], evacuate: ["evacuate"] },
  live: OPERATION_KINDS.filter(isLiveMove),
};
/** States in which a server does not run although it is on its host. */
const STANDING: readonly string[] = ["SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED", "SOFT_DELETED"];

/** A law, and how it is broken. */
export type BrokenLaw = readonly [SimFinding["law"], string];

/** What must be true of a simulated cloud when nothing is under way. */
export class CloudAtRest {
  readonly #cloud: SimCloud;
  readonly #workload: Workload;

  constructor(cloud: SimCloud, workload: Workload) {
    this.#cloud = cloud;
    this.#workload = workload;
  }

  /** Whether something is open that `violations` would report. What it does not see, the whole audit does. */
  isUnderWay(): boolean {
    if (!this.#workload.isIdle || this.#cloud.moves().some(({ state }) => state === "accepted")) return true;
    return this.#cloud.cells.some((cell) => cell.serversAtWork().some((server) => !this.#showsQuarantine(server)));
  }

  /** Tolerates no work in flight, because nothing is under way. */
  async violations(): Promise<readonly BrokenLaw[]> {
    const known = this.#cloud.facts();
    const facts = this.#trueFacts(known);
    const restored = known.cells.filter((cell) => !facts.cells.includes(cell));
    const violations = [
      ...auditCloud(facts, 0),
      ...restored.flatMap((cell) => [
        ...checkCapacity(capacityFactsOf(cell)),
        ...checkOrphans(cell),
        ...checkGroups(cell),
      ]),
    ].map(({ law, what, where, proof }) => [law, `${what} (${where}; ${proof})`] as const);
    const waiting = await this.#cloud.waitingForOperator();
    const open = this.#openTasks(known, waiting);
    const pending = (facts.api?.requests ?? [])
      .filter(({ state }) => state === "accepted" || state === "cancelled")
      .map(({ serverUuid, state }) => [5, `request ${serverUuid} is ${state}`] as const);
    const moves = this.#movesNow();
    const misplaced = facts.cells.flatMap(({ cell, servers, runningGuests }) =>
      servers
        .filter(({ status, taskState }) => STANDING.includes(status) && taskState === null)
        .filter(({ uuid, host }) => runningGuests.get(host ?? "")?.some(({ serverUuid }) => serverUuid === uuid))
        .map(({ uuid, status, host }) => [4, `server ${uuid} is ${status} and runs on ${host} of ${cell}`] as const),
    );
    const trueCells = this.#cloud.cells.filter(({ isTrue }) => isTrue);
    const remains = (await Promise.all(trueCells.map((one) => one.remains()))).flat();
    const wrong = remains.map((text) => [2, text] as const);
    // All hosts are back and have reported by now which of their guests are gone.
    const kept = facts.cells.flatMap(({ moves }) =>
      moves
        .filter(({ inFlight }) => !inFlight)
        .map(
          ({ uuid, sourceHost }) =>
            [2, `${uuid} still holds room on ${sourceHost} for a guest that may be left`] as const,
        ),
    );
    const calledOff = trueCells.flatMap(({ tasks }) => calledOffInVain(tasks, this.#workload.toldDown));
    const deaf = calledOff.map((id) => [5, `move ${id} was called off and went on`] as const);
    const still = facts.cells.flatMap(({ cell, servers, runningGuests }) =>
      servers
        .filter(({ status, taskState }) => status === "ACTIVE" && taskState === null)
        .filter(({ uuid, host }) => !runningGuests.get(host ?? "")?.some(({ serverUuid }) => serverUuid === uuid))
        .map(({ uuid, host }) => [4, `server ${uuid} is ACTIVE on ${host} of ${cell} and does not run there`] as const),
    );
    const rescued = new Set(this.#cloud.cells.flatMap((cell) => cell.rescued()));
    const unhealed = facts.cells.flatMap(({ servers }) =>
      servers
        .filter(({ uuid, status, taskState }) => status === "ACTIVE" && taskState === null && rescued.has(uuid))
        .map(({ uuid }) => [5, `server ${uuid} is ACTIVE, and its guest is still rescued`] as const),
    );
    const softly = (await this.#cloud.openSoftDeletions())
      .filter((text) => !uuidsIn(text).some((uuid) => waiting.holds(uuid)))
      .map((text) => [5, text] as const);
    const cinder = this.#wrongInCinder(facts, restored.length === 0);
    const servers = known.cells.flatMap((cell) => cell.servers.map(({ uuid }) => uuid));
    const neutron = (this.#cloud.neutron?.wrongAtRest(servers) ?? []).map((text) => [6, text] as const);
    const calls = this.#workload.isIdle ? [] : [[5, "a user waits for an answer"] as const];
    const requested = new Set(known.api?.requests.map(({ serverUuid }) => serverUuid));
    const lost = [...this.#workload.accepted]
      .filter((uuid) => !requested.has(uuid))
      .map((uuid) => [5, `request ${uuid} was accepted and is not known`] as const);
    const all = [
      ...[...violations, ...open, ...pending, ...moves, ...still, ...unhealed, ...softly],
      ...[...cinder, ...neutron],
      ...[...misplaced, ...wrong, ...kept, ...deaf, ...calls, ...lost],
    ];
    return all.filter(([law, text]) => !this.#cloud.isExcused(law, text));
  }

  /**
   * Leaves out the cells whose databases were restored and the requests to them, because their rows no longer say what exists or what users
   * were told.
   */
  #trueFacts({ cells, api }: CloudFacts): CloudFacts {
    const restored = new Set(this.#cloud.cells.flatMap(({ isTrue, name }) => (isTrue ? [] : [name])));
    const requests = (api?.requests ?? []).filter(({ cell }) => cell === null || !restored.has(cell));
    return { cells: cells.filter(({ cell }) => !restored.has(cell)), api: api && { ...api, requests } };
  }

  /** A restored database does not know which volumes its servers got and lost since, so only those of servers in other cells are compared with Cinder. */
  #wrongInCinder({ cells }: CloudFacts, areAllTrue: boolean): readonly BrokenLaw[] {
    const known = new Set(cells.flatMap(({ servers }) => servers.map(({ uuid }) => uuid)));
    return (this.#cloud.cinder?.wrongAtRest(this.#cloud) ?? [])
      .filter((text) => areAllTrue || uuidsIn(text).some((uuid) => known.has(uuid)))
      .map((text) => [6, text] as const);
  }

  /** Accepted moves that have neither begun nor been refused, or whose records are missing. */
  #movesNow(): (readonly [number, string])[] {
    const moves = this.#cloud.moves();
    const waiting = moves
      .filter(({ state }) => state === "accepted")
      .map(({ request: { kind, serverUuid } }) => [5, `a ${kind} of server ${serverUuid} has not begun`] as const);
    const known = (wanted: readonly string[]) => moves.filter(({ request }) => wanted.includes(request.kind)).length;
    const lost = Object.entries(MOVES).flatMap(([action, kinds]) => {
      const accepted = this.#workload.changes.get(action) ?? 0;
      return accepted <= known(kinds)
        ? []
        : [[5, `${accepted} calls of ${action} were accepted, not all are known`] as const];
    });
    return [...waiting, ...lost];
  }

  /**
   * Records that are left although everything was deleted. A host that was away removes its guests, and releases their allocations, only when it is
   * back.
   */
  left(): readonly BrokenLaw[] {
    const { cells, api } = this.#trueFacts(this.#cloud.facts());
    const there = (api?.requests ?? [])
      .filter(({ state }) => state !== "deleted")
      .map(({ serverUuid }) => [5, `server ${serverUuid} was deleted and is still there`] as const);
    const held = cells
      .flatMap(({ ledger }) => ledger.consumers)
      .filter(({ items }) => items.length > 0)
      .map(({ uuid }) => [2, `server ${uuid} was deleted and still holds something`] as const);
    const running = cells
      .flatMap(({ runningGuests }) => [...runningGuests])
      .flatMap(([host, guests]) => guests.map(({ serverUuid }) => ({ host, serverUuid })))
      .map(({ host, serverUuid }) => [4, `server ${serverUuid} was deleted and runs on ${host}`] as const);
    return [...there, ...held, ...running].filter(([law, text]) => !this.#cloud.isExcused(law, text));
  }

  /** The open tasks, except those that show that they wait for an operator. */
  #openTasks({ cells }: CloudFacts, waiting: WaitingForOperator): BrokenLaw[] {
    return cells.flatMap(({ openTasks }) =>
      openTasks
        .filter(({ serverUuid }) => !waiting.holds(serverUuid) || !this.#showsQuarantine(serverUuid))
        .map(({ id, serverUuid }) => [5, `task ${id} of server ${serverUuid} is open`] as const),
    );
  }

  #showsQuarantine(serverUuid: string): boolean {
    const server = this.#cloud.look(serverUuid);
    return server?.status === "ERROR" && server.fault?.message.includes(GUEST_IN_QUARANTINE) === true;
  }
}
