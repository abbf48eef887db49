import type { BlockStorage, CinderAttachment, CinderVolume, VolumeConnector } from "../../core/stores/block-storage.ts";
import { BlockStorageError } from "../../core/stores/block-storage-error.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";
import { failed, type Need, PatientCalls, UNWANTED, type Undone } from "./patient-calls.ts";
import type { ConductorStore } from "./ports.ts";

/** `connections`: how the host reaches each volume, by the volume's id. */
export type ConnectOutcome = { readonly kind: "connected"; readonly connections: Connections } | Undone;
export type Connections = ReadonlyMap<string, string>;

const OWN = { callerToken: null, requestId: null };
/** Cinder still fills the volume. */
const NOT_READY = ["creating", "downloading"];

/**
 * Connects the volumes of servers in Cinder to the host on which their guest is about to run. Connecting is repeatable: a volume that is connected to the
 * host already stays as it is, and an attachment of an earlier host stays, since a guest may still be there.
 *
 * An attachment that was not finished belongs to no guest, because hosts get orders only afterwards. Cinder does not say which host it is of, so it is
 * connected once more, or given up for a new one while the server has the volume on another host.
 */
export class VolumeConnections {
  readonly #storage: BlockStorage | null;
  readonly #calls: PatientCalls;

  /** Without `storage`, servers with volumes in Cinder cannot be started here. */
  constructor(
    deps: {
      readonly storage: BlockStorage | null;
      readonly store: Pick<ConductorStore, "holdsTask">;
      readonly clock: Clock;
    },
    settings: { readonly volumeConnectTimeoutMs: number },
  ) {
    this.#storage = deps.storage;
    this.#calls = new PatientCalls(deps, { deadlineMs: settings.volumeConnectTimeoutMs });
  }

  /**
   * Returns null at once if none of the volumes is in Cinder. The promise never rejects because of Cinder. While Cinder does not answer, or makes a
   * volume, it is asked again until the deadline, which counts from the first question; with `isUrgent`, it is asked once.
   */
  connect(
    serverUuid: string,
    volumes: readonly ServerVolume[],
    { host, ...need }: Need & { readonly host: string },
  ): Promise<ConnectOutcome> | null {
    const ids = volumes.filter(({ inCinder }) => inCinder).map(({ volumeId }) => volumeId);
    if (ids.length === 0) return null;
    const storage = this.#storage;
    if (storage === null) return Promise.resolve(failed(NO_CINDER, true));
    const to = { serverUuid, connector: connectorOf(host), mayWrite: () => this.#calls.mayWrite(need) };
    return this.#calls.call(`the server's volumes could not be connected to ${host}`, need, () =>
      connectAll(storage, ids, to),
    );
  }
}

interface Destination {
  readonly serverUuid: string;
  readonly connector: VolumeConnector;
  readonly mayWrite: () => Promise<boolean>;
}

/** The connector that Cinder's drivers get. The name of the initiator follows from the host's, so that every conductor names the same one. */
const connectorOf = (host: string): VolumeConnector => ({ host, initiator: `iqn.2026-01.org.berth:${host}` });

async function connectAll(storage: BlockStorage, ids: readonly string[], to: Destination): Promise<ConnectOutcome> {
  const connections = new Map<string, string>();
  for (const volumeId of ids) {
    const outcome = await connectOne(storage, volumeId, to);
    if ("kind" in outcome) return outcome;
    connections.set(volumeId, JSON.stringify(outcome.connection));
  }
  return { kind: "connected", connections };
}

type Connected = Pick<CinderAttachment, "connection">;

async function connectOne(storage: BlockStorage, volumeId: string, to: Destination): Promise<Connected | Undone> {
  const { serverUuid, connector } = to;
  const volume = await storage.volume(volumeId, OWN);
  if (volume === null) return failed(`Volume ${volumeId} could not be found.`, true);
  const own = await storage.attachments({ volumeId, serverUuid });
  const finished = volume.attachedTo.filter((one) => one.serverUuid === serverUuid);
  const here = finished.find(({ host }) => host === connector.host)?.attachmentId;
  const present = own.find(({ id, connection }) => id === here && connection !== null);
  if (present !== undefined) return connectedBy(storage, present);
  if (volume.status === "error" && own.length === 0)
    return failed(
      `Volume ${volumeId} could not be made: its status in Cinder is error. Cinder's messages and its volume service's log say why.`,
      true,
    );
  if (NOT_READY.includes(volume.status) && own.length === 0)
    throw new BlockStorageError("unreachable", `volume ${volumeId} is still ${volume.status}`);
  const unfinished = own.filter(({ id }) => !finished.some((one) => one.attachmentId === id));
  return finished.length === 0
    ? connectFirst(storage, volume, unfinished, to)
    : connectFurther(storage, volume, unfinished, to);
}

/** No host has the volume for this server. */
async function connectFirst(
  storage: BlockStorage,
  { id: volumeId }: CinderVolume,
  [reserved, ...others]: readonly CinderAttachment[],
  to: Destination,
): Promise<Connected | Undone> {
  if (reserved === undefined) return reserveConnected(storage, volumeId, to);
  if (!(await to.mayWrite())) return UNWANTED;
  for (const { id } of others) await storage.deleteAttachment(id);
  const outcome = await storage.connect(reserved.id, to.connector);
  switch (outcome.kind) {
    case "connected":
      return finish(storage, outcome.attachment);
    case "gone":
      throw changed(volumeId);
    case "refused":
      return failed(`Cinder does not connect volume ${volumeId} to ${to.connector.host}: ${outcome.why}`, false);
    default:
      return outcome satisfies never;
  }
}

/** Another host has the volume for this server, and may still need it. */
async function connectFurther(
  storage: BlockStorage,
  { id: volumeId }: CinderVolume,
  unfinished: readonly CinderAttachment[],
  to: Destination,
): Promise<Connected | Undone> {
  if (unfinished.length > 0 && !(await to.mayWrite())) return UNWANTED;
  for (const { id } of unfinished) await storage.deleteAttachment(id);
  return reserveConnected(storage, volumeId, to);
}

async function reserveConnected(
  storage: BlockStorage,
  volumeId: string,
  { serverUuid, connector, mayWrite }: Destination,
): Promise<Connected | Undone> {
  if (!(await mayWrite())) return UNWANTED;
  const outcome = await storage.reserve({ volumeId, serverUuid, connector }, OWN);
  switch (outcome.kind) {
    case "reserved":
      return finish(storage, outcome.attachment);
    case "unknown":
      return failed(`Volume ${volumeId} could not be found.`, true);
    case "forbidden":
    case "refused":
      return failed(`Cinder does not connect volume ${volumeId} to ${connector.host}: ${outcome.why}`, false);
    default:
      return outcome satisfies never;
  }
}

/** Nova finishes an attachment too as soon as the host has what it needs, and not only when the guest has started. */
async function finish(storage: BlockStorage, attachment: CinderAttachment): Promise<Connected> {
  if (!(await storage.complete(attachment.id))) throw changed(attachment.volumeId);
  return connectedBy(storage, attachment);
}

/**
 * Only this answer states the volume's format. Other answers guess it from the content, which the volume's owner can write, and so could make the host
 * open one of its own files.
 */
async function connectedBy(storage: BlockStorage, { id, volumeId }: CinderAttachment): Promise<Connected> {
  const attachment = await storage.attachment(id);
  if (attachment === null || attachment.connection === null) throw changed(volumeId);
  return attachment;
}

/** The attachment was deleted in the meantime, so the volume is looked at again. */
const changed = (volumeId: string) =>
  new BlockStorageError("unreachable", `the attachment of volume ${volumeId} was deleted while it was being connected`);

const NO_CINDER =
  "the server has volumes in Cinder, and the conductors of its cell cannot call Cinder: set BERTH_VOLUMES=cinder for them";
