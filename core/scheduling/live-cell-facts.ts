import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { HypervisorFacts } from "../ledger/hypervisor-facts.ts";
import { LedgerView } from "../ledger/ledger-view.ts";
import type { MovePut, RowChange, ServerPut } from "../ledger/row-change.ts";
import { isSettled, type MembersOnHost, placesOf } from "../tasks/group-rule.ts";
import { AggregateIndex } from "./aggregate-index.ts";
import { GroupPlaces } from "./group-places.ts";
import type { CellFacts, HostFacts } from "./host-facts.ts";
import { InternedKinds, type ServerKind } from "./interned-kinds.ts";
import { LiveHost } from "./live-host.ts";
import { isBusy, LiveServer } from "./live-server.ts";
import { DEFAULT_SCHEDULING_SETTINGS } from "./scheduling-settings.ts";

/** Notified of the rows of a cell's servers as they are applied, before the facts take them. */
export interface ServerWatcher {
  /** `before` is the server's previous entry; null when it had no host. */
  serverPut(change: ServerPut, before: { readonly host: string; readonly busy: boolean } | null): void;
  serverRemoved(uuid: string): void;
  /** Called with the exception of one of the other calls. It does not pass into the facts, whose follower would load the whole cell again because of it. */
  failed(error: unknown): void;
}

/** A view and its facts as one target for the feeder: each change goes to both. */
export function viewWithFacts(
  view: LedgerView,
  facts: LiveCellFacts,
): {
  applyAll(changes: Iterable<RowChange>): void;
  beginLoad(): { applyAll(changes: Iterable<RowChange>): void; show(): void };
} {
  return {
    applyAll(changes) {
      view.applyAll(changes, (change) => facts.apply(change));
    },
    beginLoad() {
      const loadedView = new LedgerView();
      const loadedFacts = new LiveCellFacts(facts.cell, loadedView);
      return {
        applyAll: viewWithFacts(loadedView, loadedFacts).applyAll,
        show() {
          view.adopt(loadedView);
          facts.adopt(loadedFacts);
        },
      };
    },
  };
}

/**
 * The hosts of one cell with their servers, aggregates and hypervisors. They follow the cell row by row beside its ledger view, and report
 * to the view each host whose facts changed. Rows may come twice, and a server may come before its host. Readers run synchronously between
 * two transactions.
 *
 * Memory: some 200 bytes a server.
 */
export class LiveCellFacts implements CellFacts {
  readonly cell: string;
  readonly #view: LedgerView;
  #hosts = new Map<string, LiveHost>();
  /** By the slot that the host's root had when it was last looked up. The host's name shows whether the entry is still valid. */
  #bySlot: (LiveHost | undefined)[] = [];
  #servers = new Map<string, LiveServer>();
  /** By server: its current move. A server has at most one, and ended moves are left out. */
  #moves = new Map<string, MovePut>();
  #groups = new GroupPlaces();
  #kinds = new InternedKinds();
  #aggregates: AggregateIndex;
  #watcher: ServerWatcher | null = null;
  /** Undefined when it must be computed again. */
  #commonVersion: number | null | undefined;

  constructor(cell: string, view: LedgerView) {
    this.cell = cell;
    this.#view = view;
    this.#aggregates = new AggregateIndex([], DEFAULT_SCHEDULING_SETTINGS.defaultAvailabilityZone);
  }

  at(root: number): HostFacts | undefined {
    const name = this.#view.hosts.nameOf(root);
    if (name === undefined) return undefined;
    const known = this.#bySlot[root];
    if (known?.name === name) return known;
    const host = this.#host(name);
    host.root = root;
    this.#bySlot[root] = host;
    return host;
  }

  homeOf(serverUuid: string): string | undefined {
    return this.#servers.get(serverUuid)?.host.name;
  }

  membersOf(group: string): ReadonlyMap<string, MembersOnHost> {
    return this.#groups.membersOf(group);
  }

  placesOf(serverUuid: string): readonly string[] {
    return this.#groups.hostsOf(serverUuid);
  }

  /** The servers of a group that are being built, moved or deleted. */
  unsettledOf(group: string): readonly string[] {
    return this.#groups.unsettledOf(group);
  }

  get commonHypervisorVersion(): number | null {
    if (this.#commonVersion === undefined) this.#commonVersion = this.#findCommonVersion();
    return this.#commonVersion;
  }

  hasMetadata(key: string): boolean {
    return this.#aggregates.keys.has(key);
  }

  metadataKeys(): Iterable<string> {
    return this.#aggregates.keys;
  }

  get serverCount(): number {
    return this.#servers.size;
  }

  /** Changes of other kinds concern the view only. The view must apply the change first. */
  apply(change: RowChange): void {
    switch (change.kind) {
      case "server-put":
        if (this.#watcher !== null) this.#tellWatcher(this.#watcher, change);
        this.#putServer(change);
        break;
      case "server-removed":
        if (this.#watcher !== null) this.#tellWatcher(this.#watcher, change);
        this.#removeServer(change.uuid);
        break;
      case "move-put":
        this.#putMove(change);
        break;
      case "move-removed":
        this.#dropMove([...this.#moves.values()].find(({ uuid }) => uuid === change.uuid));
        break;
      case "host-put":
        // The view itself records this change.
        this.#putHost(change.host, change.hypervisor);
        break;
      case "host-removed":
        this.#dropHost(change.host);
        break;
      default:
    }
  }

  /** Sets the only watcher, or takes it away with null. Without one, a server's row costs one comparison more. */
  watchServers(watcher: ServerWatcher | null): void {
    this.#watcher = watcher;
  }

  #tellWatcher(watcher: ServerWatcher, change: Extract<RowChange, { kind: "server-put" | "server-removed" }>): void {
    const before = this.#servers.get(change.uuid);
    try {
      if (change.kind === "server-removed") watcher.serverRemoved(change.uuid);
      else watcher.serverPut(change, before === undefined ? null : { host: before.host.name, busy: before.busy });
    } catch (error) {
      watcher.failed(error);
    }
  }

  applyAll(changes: Iterable<RowChange>): void {
    for (const change of changes) this.apply(change);
  }

  /**
   * Replaces the content with that of `loaded`, whose view this one's view has adopted, and which must not be used afterwards. Aggregates are
   * kept, and the watcher hears nothing.
   */
  adopt(loaded: LiveCellFacts): void {
    this.#hosts = loaded.#hosts;
    this.#bySlot = loaded.#bySlot;
    this.#servers = loaded.#servers;
    this.#moves = loaded.#moves;
    this.#groups = loaded.#groups;
    this.#kinds = loaded.#kinds;
    this.#commonVersion = undefined;
    this.setAggregates(this.#aggregates);
  }

  /** Sets the whole cloud's aggregates after they have changed. */
  setAggregates(aggregates: AggregateIndex): void {
    this.#aggregates = aggregates;
    for (const host of this.#hosts.values()) {
      host.aggregates = this.#aggregates.of(host.name);
      host.zone = this.#aggregates.zoneOf(host.aggregates);
    }
    this.#view.touchAll();
  }

  #host(name: string): LiveHost {
    let host = this.#hosts.get(name);
    if (!host) {
      const aggregates = this.#aggregates.of(name);
      host = new LiveHost(name, this.cell, aggregates, this.#aggregates.zoneOf(aggregates));
      this.#hosts.set(name, host);
      this.#commonVersion = undefined;
    }
    return host;
  }

  #putHost(name: string, hypervisor: HypervisorFacts | undefined): void {
    const host = this.#host(name);
    if (hypervisor === undefined) return;
    if (hypervisor.version !== host.hypervisor.version) this.#commonVersion = undefined;
    host.hypervisor = hypervisor;
  }

  #findCommonVersion(): number | null {
    let common: number | null = null;
    for (const { hypervisor } of this.#hosts.values()) {
      common ??= hypervisor.version;
      if (hypervisor.version !== common) return null;
    }
    return common;
  }

  /** Keeps the host's servers, since they may also come before it. */
  #dropHost(name: string): void {
    const host = this.#hosts.get(name);
    if (host?.servers.size !== 0) return;
    this.#hosts.delete(name);
    this.#commonVersion = undefined;
    if (host.root >= 0) this.#bySlot[host.root] = undefined;
  }

  #putServer(change: ServerPut): void {
    const before = this.#servers.get(change.uuid);
    if (change.host === null || change.status === "DELETED") {
      if (before) this.#removeServer(change.uuid);
      return;
    }
    const sameSpec = before && (change.specRevision === null || change.specRevision === before.specRevision);
    if (sameSpec && before.host.name === change.host) {
      before.settled = isSettled(change);
      this.#countInGroup(before);
      const busy = isBusy(change);
      if (busy === before.busy) return;
      before.busy = busy;
      before.host.ioOps += busy ? 1 : -1;
      this.#touch(before.host);
      return;
    }
    if (before) this.#removeServer(change.uuid);
    const kind = sameSpec ? before.kind : this.#kinds.of(kindOf(change.spec()));
    const specRevision = change.specRevision ?? before?.specRevision ?? null;
    this.#add(new LiveServer(this.#host(change.host), { ...change, specRevision }, kind));
  }

  #add(server: LiveServer): void {
    const { host } = server;
    host.add(server);
    this.#servers.set(server.uuid, server);
    this.#countInGroup(server);
    this.#touch(host);
  }

  #removeServer(uuid: string): void {
    const server = this.#servers.get(uuid);
    if (!server) return;
    const { host } = server;
    this.#servers.delete(uuid);
    host.remove(server);
    this.#touchAll(this.#groups.set(uuid, null));
    this.#touch(host);
  }

  #putMove(move: MovePut): void {
    const known = this.#moves.get(move.serverUuid);
    if (move.ended) {
      if (known?.uuid === move.uuid) this.#dropMove(known);
      return;
    }
    this.#moves.set(move.serverUuid, move);
    const server = this.#servers.get(move.serverUuid);
    if (server) this.#countInGroup(server);
  }

  #dropMove(move: MovePut | undefined): void {
    if (move === undefined) return;
    this.#moves.delete(move.serverUuid);
    const server = this.#servers.get(move.serverUuid);
    if (server) this.#countInGroup(server);
  }

  /** Counts a server of a group on its host and on both ends of its move. */
  #countInGroup({ uuid, host, kind: { group }, settled }: LiveServer): void {
    if (group === "") return;
    const hosts = placesOf(host.name, this.#moves.get(uuid) ?? null);
    this.#touchAll(this.#groups.set(uuid, { group, hosts, settled }));
  }

  #touchAll(names: readonly string[]): void {
    for (const name of names) this.#touch({ name });
  }

  #touch({ name }: Pick<LiveHost, "name">): void {
    const root = this.#view.hosts.slotOf(name);
    if (root >= 0) this.#view.touch(root);
  }
}

function kindOf({ projectId, flavor, imageRef, imageProperties, group }: ServerSpec): ServerKind {
  return { projectId, flavorId: flavor?.id ?? "", imageRef, imageProperties, group: group?.uuid ?? "" };
}
