import type { CellStore, TakenTask } from "../../core/stores/cell/cell-store.ts";
import { destinationOf, factsOf } from "../../core/tasks/operation-facts.ts";
import {
  asksOf,
  beginOperation,
  type OperationEffect,
  type OperationEvent,
  stepOperation,
} from "../../core/tasks/operation-machine.ts";
import type { OperationSignal } from "../../core/tasks/operation-step.ts";
import { attemptIdOf } from "../../core/tasks/server.ts";
import { type AskEffect, isAskedOfCinder, orderOf, placeAsked } from "../../services/conductor/operation-orders.ts";
import {
  deleteTask,
  dispatchOf,
  hostName,
  hostTree,
  numbered,
  providerOf,
  serverId,
  taskId,
} from "../contract/cell-fixtures.ts";
import { beginOperationOn, type RequestedOperation, volumeOf } from "./begin-operation.ts";
import { ModelCinder } from "./model-cinder.ts";
import { ModelHost, releaseGone } from "./model-host.ts";
import type { Connections, Run, WorldBody } from "./operation-world-body.ts";
import { brokenLaws, lostCopies, wrongAtRest } from "./operation-world-laws.ts";
import { pastOf } from "./past-of.ts";
import { planDelete } from "./plan-delete.ts";
import { planPatch } from "./plan-patch.ts";
import { settlingOrder } from "./settling-order.ts";

const UNSEEN_MS = 5_000;
export const HOST_COUNT = 4;
export const HOST_VCPUS = 6;

/**
 * A cell whose conductors, agents and messages are modelled, so that anything may happen between any two effects. Everything that is under
 * way lies in one bag, from which a test draws in any order. Stores and state machines are real; time and processes are not.
 */
export class OperationWorldModel {
  readonly hosts = Array.from({ length: HOST_COUNT }, (_, host) => new ModelHost(hostName(host)));
  readonly #body: WorldBody;
  readonly cinder = new ModelCinder();
  readonly #runs = new Map<string, Run>();
  /** Everything that is under way: writes, messages and answers. */
  readonly #bag: (() => Promise<void>)[] = [];
  readonly #random: (limit: number) => number;
  #conductor = numbered(0xd, 0);
  #life = 0;
  #ids = 0;
  /** Moves that were aborted in time. */
  readonly #aborted = new Set<string>();
  #isDraining = false;
  /** Copies of servers that were destroyed although there was no other one. */
  readonly #lost: string[] = [];
  /** The number of orders to hosts that fail, of 100. */
  failures = 0;

  constructor(body: WorldBody, random: (limit: number) => number) {
    this.#body = body;
    this.#random = random;
  }

  get store(): CellStore {
    return this.#body.store;
  }

  #newId(): string {
    this.#ids += 1;
    return numbered(0xe, this.#ids);
  }

  async open(servers: number): Promise<void> {
    await this.#body.ledger.putTrees(this.hosts.map((_, host) => hostTree(host, HOST_VCPUS)));
    for (const host of this.hosts.keys()) await this.#up(host);
    await this.store.renewLease({ id: this.#conductor, name: "c", leaseMs: 3_600_000 });
    for (let server = 0; server < servers; server += 1) await this.#boot(server);
  }

  async #boot(server: number): Promise<void> {
    const host = server % HOST_COUNT;
    await this.store.dispatch([dispatchOf({ server, task: server, hosts: [host] })]);
    const [taken] = await this.store.takeTasks(this.#conductor, [taskId(server)]);
    if (taken === undefined) throw new Error("not dispatched");
    const claim = { taskId: taken.task.id, serverUuid: serverId(server), epoch: taken.epoch };
    await this.store.commitActive([{ ...claim, selection: 0 }]);
    this.hosts[host]?.put(serverId(server), attemptIdOf(taken.task.id, 0), "running");
  }

  #up(host: number): Promise<readonly string[]> {
    return this.store.hostsUp(`agent-${host}`, [{ name: hostName(host), rootProvider: providerOf(host) }]);
  }

  // --- what users and operators do

  async request(requested: RequestedOperation): Promise<string> {
    const [server] = await this.store.servers([serverId(requested.server)]);
    if (server === undefined || server.status === "DELETED") return "gone";
    const { volumeId } = requested.volume ?? volumeOf(requested.server);
    if (this.cinder.isUntrue(requested.kind, volumeId, this.hosts, server)) return "untrue";
    if ((requested.kind === "rebuild" || requested.kind === "reimage") && server.host !== null) {
      const [held] = await this.store.holdings([serverId(requested.server)]);
      const host = this.hosts.findIndex((one) => one.name === server.host);
      return this.#begin({ ...requested, hosts: [host], vcpus: held?.items[0]?.amount ?? 1 });
    }
    return this.#begin(requested.kind === "evacuate" ? await this.#fenced(requested, server.host) : requested);
  }

  /** An operator evacuates a host that has died. Either the operator declares it fenced, or the cloud requires no fence. */
  async #fenced(requested: RequestedOperation, name: string | null): Promise<RequestedOperation> {
    const host = this.hosts.findIndex((one) => one.name === name);
    if (this.hosts[host]?.isUp !== false) return requested;
    if (this.#random(3) === 1) return { ...requested, fenceWaived: true };
    await this.fence(host);
    return requested;
  }

  /** An operator declares that nothing runs on a host that is down. Operations that wait for the host are informed. */
  async fence(host: number): Promise<void> {
    const model = this.hosts[host];
    if (model === undefined || model.isUp) return;
    await this.#body.admin.setForcedDown(model.name, true);
    model.isFenced = model.wasFenced = true;
    for (const run of this.#runs.values()) {
      const { state, world } = run;
      if (
        state.kind !== "asking" ||
        placeAsked(world.facts, asksOf(world, state.stage), state.selection)?.host !== model.name
      )
        continue;
      this.#answer(run, { kind: "host-fenced", step: state.step, reason: `${model.name} was forced down` }, model);
    }
  }

  async #begin(requested: RequestedOperation): Promise<string> {
    const { task, outcome } = await beginOperationOn(this.store, {
      ...requested,
      unseenMs: UNSEEN_MS,
      taskId: this.#newId(),
    });
    if (task !== null && outcome.kind === "begun") {
      this.#bag.push(() => this.take([task.id]));
      // The server was offloaded, so a guest that a silent host still has is not a copy that anybody needs.
      if (requested.kind === "unshelve") for (const host of this.hosts) host.forget(serverId(requested.server));
    }
    return outcome.kind;
  }

  async delete(server: number): Promise<void> {
    const task = { ...deleteTask(server, 0), id: this.#newId() };
    const [outcome] = await this.store.requestDelete([task]);
    if (outcome?.kind === "queued") this.#bag.push(() => this.take([outcome.task.id]));
  }

  async signal(server: number, signal: OperationSignal): Promise<void> {
    const [migration] = await this.store.migrations({ serverUuid: serverId(server), inFlightOnly: true, limit: 1 });
    if (migration === undefined) return;
    const [outcome] = await this.store.signal([{ taskId: migration.uuid, signal }]);
    if (outcome === "signalled" && signal === "abort") this.#aborted.add(migration.uuid);
  }

  /** Attaches a port to the server at its present place that takes this many VCPUs, or releases them when the number is negative. */
  async patch(server: number, vcpus: number): Promise<string> {
    const planned = await planPatch(this.store, this.hosts, { server, vcpus });
    if (planned !== null) this.#bag.push(planned);
    return planned === null ? "nothing" : "planned";
  }

  // --- what happens to processes

  /** All conductors die. Their messages are still under way, and answers to them are lost. */
  async crash(): Promise<void> {
    this.#runs.clear();
    this.#life += 1;
    await this.store.giveUpLease(this.#conductor);
    this.#conductor = this.#newId();
    await this.store.renewLease({ id: this.#conductor, name: "c", leaseMs: 3_600_000 });
  }

  async hostDies(host: number): Promise<void> {
    this.hosts[host]?.die();
    await this.#body.pass();
    const seen = this.hosts.flatMap((one, at) => (one.isUp ? [`agent-${at}`] : []));
    await this.store.agentsSeen(seen, UNSEEN_MS);
    await this.store.expireAgents(UNSEEN_MS);
  }

  /** Acts as an agent that arrives at a conductor: it is seen, compared, and up. Anything may happen in between. */
  async hostReturns(host: number): Promise<void> {
    const model = this.hosts[host];
    if (model === undefined || model.isUp) return;
    model.isUp = true;
    // The host has power again, and its fence is revoked.
    await this.#body.admin.setForcedDown(model.name, false);
    model.isFenced = false;
    await this.store.agentArrived(`agent-${host}`, [model.name]);
    const settle = async () => {
      for (const guest of model.guests()) await this.#settle(model, guest.attemptId);
      this.#bag.push(async () => {
        if (!model.isUp) return;
        await releaseGone(this.store, model);
        await this.#up(host);
      });
    };
    this.#bag.push(async () => (model.isUp ? settle() : undefined));
  }

  /** One item of the bag happens, and sometimes twice. Returns false when the bag is empty. */
  async step(): Promise<boolean> {
    const at = this.#random(Math.max(1, this.#bag.length));
    const [happening] = this.#bag.splice(at, 1);
    if (happening === undefined) return false;
    if (this.#random(10) === 0 && !this.#isDraining) this.#bag.push(happening);
    await happening();
    this.#lost.push(...(await lostCopies(this.store, this.hosts)), ...this.cinder.violations(this.hosts));
    return true;
  }

  async sweep(): Promise<void> {
    const connected = this.#connections();
    this.#adopt(await this.store.sweepTasks(this.#conductor, 0, 100), connected);
  }

  /** Lets everything that was begun come to its end: there are no more failures, and all hosts come back. */
  async drain(): Promise<void> {
    this.failures = 0;
    this.#isDraining = true;
    for (let rounds = 0; rounds < 50; rounds += 1) {
      for (const host of this.hosts.keys()) await this.hostReturns(host);
      for (let steps = 0; await this.step(); steps += 1) if (steps > 5_000) throw new Error("it never ends");
      await this.crash();
      await this.sweep();
      if (this.#bag.length === 0) break;
    }
    for (const host of this.hosts) for (const guest of host.guests()) await this.#settle(host, guest.attemptId);
    while (await this.step());
    for (const host of this.hosts) await releaseGone(this.store, host);
  }

  async take(taskIds: readonly string[]): Promise<void> {
    const connected = this.#connections();
    this.#adopt(await this.store.takeTasks(this.#conductor, taskIds), connected);
  }

  #connections(): Connections {
    return this.hosts.map((host) => host.connection);
  }

  #adopt(taken: readonly TakenTask[], confirmed: Connections): void {
    const life = this.#life;
    for (const one of taken)
      this.#bag.push(async () => (life === this.#life ? this.#start(one, confirmed) : undefined));
  }

  // --- a conductor

  async #start(taken: TakenTask, confirmed: Connections): Promise<void> {
    if (taken.task.work?.$case === "delete") {
      await this.#startDelete(taken);
      return;
    }
    const [position] = await this.store.positions([taken.task.id]);
    if (position === undefined) return;
    const world = { facts: factsOf(taken.task), unseenMs: UNSEEN_MS };
    const { state, effects } = beginOperation(world, position, await pastOf(this.store, taken.task));
    const run: Run = { taken, world, state, confirmed };
    this.#runs.set(taken.task.id, run);
    this.#carryOut(run, effects);
  }

  /**
   * Sends the answer to the run that asked, unless its conductor has died meanwhile. A conductor that learns of a host's silence or fence when the host
   * is connected again asks the host once more instead.
   */
  #answer(run: Run, event: OperationEvent, silent?: ModelHost): void {
    this.#bag.push(async () => {
      if (!this.#isAlive(run)) return;
      const { state, effects } = stepOperation(run.world, run.state, silent?.isUp ? { kind: "host-connected" } : event);
      run.state = state;
      this.#carryOut(run, effects);
    });
  }

  #carryOut(run: Run, effects: readonly OperationEffect[]): void {
    const connected = this.#connections();
    const sent = connected.map((connection, at) => (connection === run.confirmed[at] ? connection : null));
    for (const effect of effects) {
      // Cinder is asked before the order is sent, which may arrive late.
      const isForbidden = effect.kind === "ask" && this.cinder.forbids(run.world.facts, effect);
      this.#bag.push(async () => {
        if (effect.kind === "ask") await this.#order(run, effect, { sent, isForbidden });
        // Messages that a dead conductor had sent are still under way as long as the connection exists.
        else if (
          effect.kind === "commit" ||
          this.#isAlive(run) ||
          this.hosts.every((host, at) => host.connection === connected[at])
        )
          await this.#perform(run, effect);
      });
    }
  }

  #isAlive(run: Run): boolean {
    return this.#runs.get(run.taken.task.id) === run;
  }

  /**
   * An order that was sent while its host was connected arrives as long as that connection exists, whatever has become of the conductor. On a
   * connection that was accepted after the database last confirmed the task, a conductor gives the order of its present step only, and asks the
   * database first whether it still carries out the task.
   */
  async #order(run: Run, effect: AskEffect, by: { sent: Connections; isForbidden: boolean }): Promise<void> {
    const place = placeAsked(run.world.facts, effect.ask, effect.selection);
    const at = this.hosts.findIndex((host) => host.name === place?.host);
    const now = this.hosts[at]?.connection ?? null;
    const isSent = now !== null && now === by.sent[at];
    const isPresent = this.#isAlive(run) && run.state.kind === "asking" && run.state.step === effect.step;
    const tenure = { taskId: run.taken.task.id, epoch: run.taken.epoch };
    if (isSent || (isPresent && (now === null || (await this.store.holdsTask(tenure))))) this.#ask(run, effect, by);
  }

  async #perform(run: Run, effect: Exclude<OperationEffect, AskEffect>): Promise<void> {
    const { facts } = run.world;
    switch (effect.kind) {
      case "commit": {
        const claim = { taskId: facts.taskId, serverUuid: facts.after.uuid, epoch: run.taken.epoch };
        const connected = this.#connections();
        const [outcome] = await this.store.commitStep([{ ...claim, ...effect.write, step: effect.step }]);
        if (outcome === undefined) return;
        if (outcome.kind === "committed") run.confirmed = connected;
        this.#answer(run, outcome.kind === "fenced" ? outcome : { ...outcome, step: effect.step });
        return;
      }
      case "clear": {
        const place = destinationOf(facts, effect.selection);
        const host = this.hosts.find((one) => one.name === place?.host);
        if (place !== null && host !== undefined) await this.#settle(host, place.attemptId);
        return;
      }
      default:
        return;
    }
  }

  #ask(run: Run, effect: AskEffect, { isForbidden }: { readonly isForbidden: boolean }): void {
    const place = placeAsked(run.world.facts, effect.ask, effect.selection);
    const host = this.hosts.find((one) => one.name === place?.host);
    if (place === null || host === undefined) throw new Error(`nobody to ask for ${effect.ask}`);
    const { step } = effect;
    if (effect.ask === "reimage-volume") {
      // A late question finds the volume at a host again, and is refused by Cinder.
      if (!this.#isAlive(run) || run.state.kind !== "asking" || run.state.step !== step) return;
      const asked = { taskId: run.taken.task.id, serverUuid: run.world.facts.after.uuid, step };
      const end = this.cinder.reimage(asked, this.#random(100) < this.failures, (event) => this.#answer(run, event));
      const goOn = async (): Promise<void> => void (end(this.#isDraining) || this.#bag.push(goOn));
      this.#bag.push(goOn);
    } else if (isForbidden) this.#answer(run, { kind: "failed", step, reason: "it is being filled", final: true });
    else if (isAskedOfCinder(effect.ask)) {
      this.#lost.push(...this.cinder.end(effect.ask, run.world.facts, host, place.attemptId));
      this.#answer(run, { kind: "done", step });
    } else if (!host.isUp) {
      const kind = host.isFenced ? "host-fenced" : "gone";
      this.#answer(run, { kind, step, reason: `${host.name} is not connected` }, host);
    } else {
      const needs = { timeoutMs: 1_000, traceparent: "", listensAt: "", needs: this.cinder.needs };
      const order = orderOf(run.world.facts, effect, { place, ...needs });
      const failed = host.obey(order, this.#random(100) < this.failures ? "it is broken" : null);
      if (failed === null) this.#answer(run, { kind: "done", step });
      else this.#answer(run, { kind: "failed", step, reason: failed, final: false });
    }
  }

  async #settle(host: ModelHost, attemptId: string): Promise<void> {
    const order = await settlingOrder(this.store, host, attemptId);
    const { deaths } = host;
    if (order !== null) this.#bag.push(async () => (host.deaths === deaths ? order() : undefined));
  }

  async #startDelete(taken: TakenTask): Promise<void> {
    const life = this.#life;
    const { destroy, commit } = await planDelete(this.store, this.hosts, taken);
    this.#bag.push(async () => {
      const left = destroy();
      if (life === this.#life) this.#bag.push(() => commit(left));
    });
  }

  /** Violations of the laws at this moment, while anything may be in progress. Empty when there are none. */
  async violations(): Promise<readonly string[]> {
    return [...this.#lost, ...brokenLaws(await this.#body.facts(), this.hosts)];
  }

  /** Violations when nothing is still in progress. */
  async restViolations(): Promise<readonly string[]> {
    const calledOff = await this.store.migrations({ uuids: [...this.#aborted], limit: 1_000 });
    return [...(await this.violations()), ...(await wrongAtRest(this.#body, this.hosts, calledOff))];
  }
}
