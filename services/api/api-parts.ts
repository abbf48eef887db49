import type { FastifyInstance } from "fastify";
import type { Registry } from "prom-client";
import type { ImageDirectory } from "../../adapters/images/image-directory.ts";
import type { Tracing } from "../../adapters/telemetry/tracing.ts";
import { assert } from "../../core/assert.ts";
import type { HostFilter } from "../../core/scheduling/filters/host-filter.ts";
import type { ConsoleTokenStore } from "../../core/stores/api/console-token-store.ts";
import type { DecisionStore } from "../../core/stores/api/decision-store.ts";
import type { ImageStore } from "../../core/stores/api/image-store.ts";
import type { KeypairStore } from "../../core/stores/api/keypair-store.ts";
import type { LimitSource } from "../../core/stores/api/limit-source.ts";
import type { MoveStore } from "../../core/stores/api/move-store.ts";
import type { PortNoteStore } from "../../core/stores/api/port-note-store.ts";
import type { PortStore } from "../../core/stores/api/port-store.ts";
import type { QuotaStore } from "../../core/stores/api/quota-store.ts";
import type { SoftDeletionStore } from "../../core/stores/api/soft-deletion-store.ts";
import type { VolumeStore } from "../../core/stores/api/volume-store.ts";
import type { BlockStorage } from "../../core/stores/block-storage.ts";
import type { FloatingIps } from "../../core/stores/floating-ips.ts";
import type { LawsReading } from "../../core/stores/laws-reading.ts";
import type { Networking } from "../../core/stores/networking.ts";
import type { OwnSecurityGroups, SecurityGroups } from "../../core/stores/security-groups.ts";
import type { Bus } from "../../runtime/bus.ts";
import type { Clock } from "../../runtime/clock.ts";
import type { Logger } from "../../runtime/logger.ts";
import type { Ticker } from "../../runtime/ticker.ts";
import { CellClient } from "./cells/cell-client.ts";
import { HostSyncer } from "./compute/aggregates/host-syncer.ts";
import { FlavorCatalog } from "./compute/flavors/flavor-catalog.ts";
import { FloatingIpDesk } from "./compute/floating-ips/floating-ip-desk.ts";
import { NetworkRefresher } from "./compute/neutron-ports/network-refresher.ts";
import { NeutronPortSettler } from "./compute/neutron-ports/neutron-port-settler.ts";
import { ProjectLimits } from "./compute/quotas/project-limits.ts";
import type { QuotaSets } from "./compute/quotas/quota-deps.ts";
import { quotaSetsOf } from "./compute/quotas/quota-sets.ts";
import { ResizeSettler } from "./compute/quotas/resize-settler.ts";
import { UnifiedLimits } from "./compute/quotas/unified-limits.ts";
import type { ActionDeps } from "./compute/server-actions/action-call.ts";
import { MoveAcceptor } from "./compute/server-actions/move-acceptor.ts";
import { openSettlers } from "./compute/server-actions/open-settlers.ts";
import { AttachmentSweeper } from "./compute/server-volumes/attachment-sweeper.ts";
import { CinderServerVolumes } from "./compute/server-volumes/cinder-server-volumes.ts";
import { OwnServerVolumes } from "./compute/server-volumes/own-server-volumes.ts";
import type { ServerVolumes } from "./compute/server-volumes/server-volumes.ts";
import { VolumeEndWaiter } from "./compute/server-volumes/volume-end-waiter.ts";
import { DeletionMarker } from "./compute/servers/deletion-marker.ts";
import { KnownZones } from "./compute/servers/known-zones.ts";
import { RequestAcceptor } from "./compute/servers/request-acceptor.ts";
import { RequestFinder } from "./compute/servers/request-finder.ts";
import { SoftDeleter } from "./compute/soft-deletion/soft-deleter.ts";
import type { FaultPanel } from "./dashboard/fault-panel.ts";
import { ApiEvents } from "./events.ts";
import { boundLists } from "./http/bound-lists.ts";
import { createHttp, type Http, type MakeHttp } from "./http/create-http.ts";
import type { AuthenticateToken } from "./http/identity.ts";
import { ListBudget } from "./http/list-budget.ts";
import type { IsUnknownProject } from "./http/refuse-unknown-project.ts";
import type { ImageCatalog } from "./image/image-catalog.ts";
import type { GlanceParts } from "./image/open-glance.ts";
import { openImages } from "./image/open-images.ts";
import type { NeutronDeps } from "./network/neutron-deps.ts";
import { PortSweeper } from "./network/port-sweeper.ts";
import { NeutronGroupedPorts } from "./network/security-groups/neutron-grouped-ports.ts";
import { OwnGroupedPorts } from "./network/security-groups/own-grouped-ports.ts";
import { SecurityGroupDesk } from "./network/security-groups/security-group-desk.ts";
import type { Policy } from "./policy/policy.ts";
import type { ApiDatabasePort, CellPort, OperatorStores, ReservationsPort, ServerGroupsPort } from "./ports.ts";
import type { ApiSettings } from "./settings.ts";

/** How often changes of operators are written to the cells, and how often all of them are compared. */
const SYNC_MS = 1_000;
const FULL_SYNC_MS = 60_000;
/** How often the ports in Neutron of servers that have ended or whose call broke off are looked at. */
const NEUTRON_POLL_MS = 1_000;
/** How often resizes that may have ended are looked for. */
const RESIZE_POLL_MS = 5_000;
/** How often ports of servers that are gone are looked for. */
const PORT_SWEEP_MS = 30_000;
/** How often a page of Cinder's attachments is compared with the database. */
const ATTACHMENT_SWEEP_MS = 10_000;

export interface ApiDeps {
  readonly store: ApiDatabasePort;
  readonly groups: ServerGroupsPort;
  readonly reservations: ReservationsPort;
  readonly cells: readonly CellPort[];
  /** The stores of the operators' settings. Without them there are no aggregates, zones or ratios, and settings have their defaults. */
  readonly operators?: OperatorStores;
  /** The decisions of schedulers. Without this store, they cannot be explained. */
  readonly decisions?: Pick<DecisionStore, "decisionsOf">;
  /** The schedulers' own filters, for explanations. */
  readonly filters?: readonly HostFilter[];
  /** The registered images. Without this store, images are not registered and servers may name any image. */
  readonly images?: ImageStore;
  /** Glance. Without it, servers have images of the api's own. */
  readonly glance?: GlanceParts | null;
  /** The directory with the bits of images. Without it, none can be uploaded, and new images are active at once. */
  readonly imageFiles?: ImageDirectory | null;
  /** Whether new images wait for their bits if there is a directory for them. True by default; false for hosts that only pretend to read them. */
  readonly imagesNeedData?: boolean;
  /** The network ports. Without this store, there are none. */
  readonly networkPorts?: PortStore;
  /** The security groups of Berth's own network. Without them, there are none. */
  readonly securityGroups?: OwnSecurityGroups;
  /** Neutron's security groups; required with the networks `neutron`. */
  readonly neutronSecurityGroups?: SecurityGroups;
  /** Neutron, its floating IPs, and the notes of servers that have ports there; required with the networks `neutron`. */
  readonly networking?: Networking;
  readonly floatingIps?: FloatingIps;
  readonly portNotes?: PortNoteStore;
  /** The volumes, or with Cinder the copies of those that servers have. Without this store, there are none. */
  readonly volumes?: VolumeStore;
  /** Cinder; required with the volumes `cinder`. */
  readonly blockStorage?: BlockStorage | undefined;
  /** Keystone's limits of projects, which replace all limits of `quotas`. Undefined where operators set the limits here. */
  readonly limitSource?: LimitSource | undefined;
  /** Quotas and their use. Without this store, every project has the default quotas, and servers are not counted. */
  readonly quotas?: QuotaStore;
  /** The servers that are deleted softly. Without this store, none is, and none is restored. */
  readonly softDeletions?: SoftDeletionStore;
  /** The keypairs of users. Without this store, there are none. */
  readonly keypairs?: KeypairStore;
  readonly consoleTokens?: ConsoleTokenStore;
  /** The rules of the Compute API; by default those of Nova. */
  readonly policy?: Policy;
  /** The accepted moves. Without this store, no server is moved to another host. */
  readonly moves?: MoveStore;
  /** Finds the identity behind a token; required where Keystone authenticates callers. */
  readonly keystone?: AuthenticateToken | null;
  /** Asks Keystone about projects. Absent where it has none. */
  readonly isUnknownProject?: IsUnknownProject | null;
  /** The API tier's own bus. */
  readonly bus: Pick<Bus, "publish" | "ensureStreams" | "streamState">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly registry: Registry;
  readonly tracing: Tracing;
  /** Further lines in the answer of `/readyz`. */
  readonly remarks?: () => readonly string[];
  /** Called after everything else has started, just before the api listens. */
  readonly beforeListening?: () => Promise<void>;
  /** Returns what a continuous audit in this process has found, for the dashboard. */
  readonly laws?: () => LawsReading | null;
  /** Injects faults into parts of the cloud from the dashboard, only for clouds in one process. */
  readonly faults?: FaultPanel;
  /** Makes the HTTP server; Fastify by default. */
  readonly makeHttp?: MakeHttp;
  /** Other APIs to serve on the same address, each under a path of its own. */
  readonly mounts?: readonly ((http: FastifyInstance) => Promise<void>)[];
}

/** The parts of an api that its routes call. */
export interface ApiParts {
  readonly http: Http;
  readonly events: ApiEvents;
  readonly server: ActionDeps;
  /** Null when this process has no stores of the operators' settings. */
  readonly syncer: HostSyncer | null;
  /** Its work beside calls, which runs from the start to the end of the service. */
  readonly background: readonly Pick<Ticker, "start" | "stop">[];
  /** What is cached of the api's own images. Null when this process has none. */
  readonly imageCatalog: ImageCatalog | null;
  /** Quota sets and classes. Null where servers are not counted. */
  readonly quotaSets: QuotaSets | null;
}

/** Builds the parts of an api. Nothing runs before its service starts. */
export function createParts(deps: ApiDeps, settings: ApiSettings): ApiParts {
  const { store, clock } = deps;
  const events = new ApiEvents(deps.logger, deps.registry);
  const cells = new Map(deps.cells.map((cell) => [cell.name, new CellClient(cell, { clock, events }, settings.cells)]));
  const { moves, quotas = null } = deps;
  const neutron = usedNeutron(deps, settings);
  const volumes = usedVolumes(deps, events, settings);
  const unified = openUnifiedLimits(deps, events, settings);
  const limits = new ProjectLimits(
    { store: unified === null ? quotas : { limits: (project) => unified.asSet(project) }, clock },
    { defaults: settings.quotas, cacheMs: unified === null ? settings.flavorCacheMs : 0 },
  );
  const images = openImages(deps, events, { cacheMs: settings.flavorCacheMs, bytesMax: settings.imageBytesMax });
  const marker = new DeletionMarker({
    ...{ store, events, volumes, portsOfFailed: neutron?.notes ?? null },
    networkPorts: neutron?.notes ?? sweptPorts(deps, settings),
  });
  const softDeleter = openSoftDeleter(deps, { cells, events, marker, unified }, settings);
  const server: ActionDeps = {
    store,
    resizes: openResizeSettler(deps, { cells, events }, settings),
    softDeleter,
    marker,
    groups: deps.groups,
    cells,
    clock,
    events,
    acceptor: new RequestAcceptor(
      { store, reservations: deps.reservations, bus: deps.bus, events, quotas, unified },
      { ...settings.intake, quotas: quotas === null ? null : settings.quotas },
    ),
    limits,
    finder: new RequestFinder({ store }),
    flavors: new FlavorCatalog({ store, clock }, { cacheMs: settings.flavorCacheMs }),
    zones: new KnownZones({ stores: deps.operators ?? null, clock }, { cacheMs: SYNC_MS }),
    images: images?.service ?? null,
    consoleTokens: deps.consoleTokens ?? null,
    cinder: usedCinder(deps, settings),
    networkPorts: deps.networkPorts ?? null,
    volumes,
    volumeEnds: volumes === null ? null : new VolumeEndWaiter({ volumes, clock, events }),
    ...{ networks: settings.networks, neutron },
    ...addressParts(neutron, { store, cells, clock, events }),
    securityGroups: openSecurityGroups(deps, neutron),
    keypairs: deps.keypairs ?? null,
    movesStore: moves ?? null,
    mover: moves
      ? new MoveAcceptor(
          { store: moves, bus: deps.bus, clock, events, quotas, unified },
          { ...settings.intake, quotas: settings.quotas },
        )
      : null,
    decisions: deps.decisions ?? null,
  };
  const http = createHttp({ events, tracing: deps.tracing, makeHttp: deps.makeHttp }, settings.http);
  http.addHook("onClose", async () => images?.close());
  const sendMsMax = 2 * settings.http.requestTimeoutMs;
  boundLists(http, new ListBudget(settings.lists), { pageMax: settings.pageMax, sendMsMax });
  const syncer =
    deps.operators === undefined
      ? null
      : new HostSyncer({ stores: deps.operators, cells, events, clock }, { pollMs: SYNC_MS, fullMs: FULL_SYNC_MS });
  const settlers = openSettlers(server, { settleMs: settleMsOf(settings) });
  const ports = openPortSweeper(neutron === null ? sweptPorts(deps, settings) : null, { events, clock });
  const sweeper = openSweeper(deps, settings, { cells, events });
  const running = [syncer, ...settlers, ports, server.portSettler, server.refresher, sweeper, images?.fetcher ?? null];
  const background = running.filter((one) => one !== null);
  const quotaSets = quotas && quotaSetsOf(quotas, unified);
  return { http, events, server, syncer, background, imageCatalog: images?.catalog ?? null, quotaSets };
}

/** Returns Keystone's limits, if it has them. */
function openUnifiedLimits(
  { limitSource: source, clock }: ApiDeps,
  events: ApiEvents,
  { limitsCacheMs: cacheMs }: ApiSettings,
): UnifiedLimits | null {
  return source === undefined ? null : new UnifiedLimits({ source, clock, events }, { cacheMs });
}

/** Returns the loop that counts resized servers as they are, if servers are counted and moved. */
function openResizeSettler(
  { quotas, moves, store, clock }: ApiDeps,
  parts: Pick<ActionDeps, "cells" | "events">,
  settings: ApiSettings,
): ResizeSettler | null {
  if (quotas === undefined || moves === undefined) return null;
  const times = { pollMs: RESIZE_POLL_MS, settleMs: settleMsOf(settings) };
  return new ResizeSettler({ quotas, moves, store, clock, ...parts }, times);
}

/** How long what a call has begun is left alone, because the call may still be under way. */
const settleMsOf = ({ http }: ApiSettings): number => 2 * http.requestTimeoutMs;

function openSoftDeleter(
  { softDeletions: deletions, moves, store, quotas }: ApiDeps,
  parts: Pick<ActionDeps, "cells" | "events" | "marker"> & { readonly unified: UnifiedLimits | null },
  settings: ApiSettings,
): SoftDeleter | null {
  if (deletions === undefined) return null;
  const options = { keepMs: settings.reclaimInstanceIntervalMs, quotas: quotas === undefined ? null : settings.quotas };
  return new SoftDeleter({ deletions, store, moves: moves ?? null, ...parts }, options);
}

/** Returns the loop that ends what Cinder has of volumes that no guest has, if servers have volumes of Cinder. */
function openSweeper(
  { blockStorage: storage, volumes, store, clock }: ApiDeps,
  settings: ApiSettings,
  parts: Pick<ActionDeps, "cells" | "events">,
): AttachmentSweeper | null {
  if (settings.volumes !== "cinder" || storage === undefined || volumes === undefined) return null;
  const options = { pollMs: ATTACHMENT_SWEEP_MS, patienceMs: settleMsOf(settings) };
  return new AttachmentSweeper({ storage, volumes, store, clock, ...parts }, options);
}

/** Returns the volumes that servers can have: Berth's own, those of Cinder, or null for none. */
function usedVolumes(
  { volumes: store, blockStorage: storage, clock }: ApiDeps,
  events: ApiEvents,
  { volumes: rule, auth, volumesPerProject: limits }: ApiSettings,
): ServerVolumes | null {
  if (store === undefined || rule === "none") return null;
  if (rule === "simple") return new OwnServerVolumes({ store, clock, limits });
  assert(storage !== undefined, "an api with Cinder needs its client");
  return new CinderServerVolumes({ store, storage, events, clock }, { sendsTokens: auth === "keystone" });
}

/** Returns Cinder, if servers have volumes of it. */
const usedCinder = ({ blockStorage: storage }: ApiDeps, { volumes, auth }: ApiSettings): ActionDeps["cinder"] =>
  storage === undefined || volumes !== "cinder" ? null : { storage, sendsTokens: auth === "keystone" };

/** Returns the loop that ends the ports of Berth's own network of servers that are gone. */
const openPortSweeper = (
  networkPorts: PortStore | null,
  parts: Pick<ActionDeps, "events" | "clock">,
): PortSweeper | null => networkPorts && new PortSweeper({ networkPorts, ...parts }, { pollMs: PORT_SWEEP_MS });

/** Returns what servers with ports in Neutron need, if servers have them. */
function usedNeutron(
  { networking, floatingIps, portNotes: notes }: ApiDeps,
  { networks, auth }: ApiSettings,
): NeutronDeps | null {
  if (networks !== "neutron") return null;
  assert(
    networking !== undefined && floatingIps !== undefined && notes !== undefined,
    "an api with Neutron needs its client, its floating IPs and its notes",
  );
  return { networking, floatingIps, notes, sendsTokens: auth === "keystone" };
}

/** Returns what the addresses and the ports of servers need. */
const addressParts = (
  neutron: NeutronDeps | null,
  parts: Pick<ActionDeps, "store" | "cells" | "clock" | "events">,
): Pick<ActionDeps, "floatingIps" | "refresher" | "portSettler"> => ({
  floatingIps: new FloatingIpDesk(neutron),
  refresher: neutron === null ? null : new NetworkRefresher({ neutron, ...parts }),
  portSettler: neutron && new NeutronPortSettler({ ...neutron, ...parts }, { pollMs: NEUTRON_POLL_MS }),
});

/** Returns the security groups that servers can be in. */
function openSecurityGroups(
  { securityGroups: own, neutronSecurityGroups: inNeutron, networkPorts }: ApiDeps,
  neutron: NeutronDeps | null,
): SecurityGroupDesk | null {
  if (neutron !== null) {
    assert(inNeutron !== undefined, "an api with Neutron needs Neutron's security groups");
    const { sendsTokens } = neutron;
    return new SecurityGroupDesk({
      groups: inNeutron,
      own: null,
      ports: new NeutronGroupedPorts(neutron),
      sendsTokens,
    });
  }
  if (own === undefined || networkPorts === undefined) return null;
  return new SecurityGroupDesk({ groups: own, own, ports: new OwnGroupedPorts(networkPorts, own), sendsTokens: false });
}

/** Returns the store of ports if servers get ports of Berth's own network, which end with them. */
const sweptPorts = ({ networkPorts }: ApiDeps, { networks }: ApiSettings): PortStore | null =>
  networks === "simple" ? (networkPorts ?? null) : null;
