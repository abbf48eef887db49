import type { BlockStorage, CinderAttachment, CinderVolume, VolumeConnector } from "../../core/stores/block-storage.ts";
import { BlockStorageError } from "../../core/stores/block-storage-error.ts";
import { OWN_NAME } from "../../core/stores/networking.ts";
import { idInCinder } from "../../core/tasks/server-volumes.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import type { Clock } from "../../runtime/clock.ts";
import { Turns } from "../../runtime/turns.ts";
import { failed, type Need, noCinder, PatientCalls, UNWANTED, type Undone } from "./patient-calls.ts";
import type { ConductorStore } from "./ports.ts";

/** `connections`: how the host reaches each volume, by the volume's id in Cinder. */
export type ConnectOutcome = { readonly kind: "connected"; readonly connections: Connections } | Undone;
export type Connections = ReadonlyMap<string, string>;

/** How long Cinder's driver may take beyond the time for which Cinder waits for it, before it is asked once more. */
const SLOW_MS_MAX = 5 * 60_000;
/** An error without a reason that comes later than this is that of a driver for which Cinder has not waited any longer (`rpc_response_timeout`: 60 s). */
const SLOW_FROM_MS = 30_000;
/** Cinder still makes the volume, or fills it with an image. */
const NOT_READY = ["creating", "downloading"];

/**
 * Connects the volumes of servers in Cinder to the host on which their guest is about to run. Connecting is repeatable: a volume that is connected to the
 * host already stays as it is, and an attachment of an earlier host stays, since a guest may still be there.
 *
 * An attachment that was not finished belongs to no guest, because hosts get orders only afterwards. Cinder shows the host of finished ones alone. So an
 * attachment that was connected is finished, and used if it proves to be of this host. All others are connected once more, or given up for a new one while
 * the server has the volume on another host.
 *
 * Cinder gives its driver about a minute, answers with an error then, and connects the volume all the same when the driver is ready. So after a question that
 * was not answered in time, the attachment is watched for some minutes before it is asked for once more.
 *
 * A volume that Cinder fills with an image is not touched, not even where an attachment would let Cinder show another status for it: Cinder writes to it, so no guest may.
 */
export class VolumeConnections {
  readonly #storage: BlockStorage | null;
  readonly #calls: PatientCalls;
  readonly #clock: Clock;
  readonly #turns = new Turns<string>();

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
    this.#clock = deps.clock;
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
    const inCinder = volumes.filter((one) => one.inCinder);
    if (inCinder.length === 0) return null;
    const storage = this.#storage;
    if (storage === null) return Promise.resolve(failed(noCinder("the server has volumes in Cinder"), true));
    const to = {
      ...{ serverUuid, connector: connectorOf(host), mayWrite: () => this.#calls.mayWrite(need) },
      isUrgent: need.isUrgent ?? false,
      ...{ slow: new Map<string, number>(), nowMs: () => this.#clock.monotonic() },
    };
    return this.#calls.call(`the server's volumes could not be connected to ${host}`, need, () =>
      // A host that connects again has its server's volumes connected again. Two of that at once would both make an attachment.
      this.#turns.take([serverUuid], () => connectAll(storage, inCinder, to)),
    );
  }
}

interface Destination {
  readonly serverUuid: string;
  readonly connector: VolumeConnector;
  /** Whether nobody waits until a volume is ready. */
  readonly isUrgent: boolean;
  readonly mayWrite: () => Promise<boolean>;
  /** When Cinder left a question to connect a volume without an answer, by the volume's id. */
  readonly slow: Map<string, number>;
  readonly nowMs: () => number;
}

/** The connector that Cinder's drivers get. The name of the initiator follows from the host's, so that every conductor names the same one. */
const connectorOf = (host: string): VolumeConnector => ({ host, initiator: `iqn.2026-01.org.berth:${host}` });

async function connectAll(
  storage: BlockStorage,
  volumes: readonly ServerVolume[],
  to: Destination,
): Promise<ConnectOutcome> {
  const connections = new Map<string, string>();
  for (const volume of volumes) {
    const volumeId = idInCinder(volume);
    const outcome = await connectOne(storage, volumeId, to);
    if ("kind" in outcome) return outcome;
    if (volume.file !== "" && outcome.connection?.name !== volume.file)
      return otherFile(volume, String(outcome.connection?.name));
    connections.set(volumeId, JSON.stringify(outcome.connection));
  }
  return { kind: "connected", connections };
}

type Connected = Pick<CinderAttachment, "connection">;

async function connectOne(storage: BlockStorage, volumeId: string, to: Destination): Promise<Connected | Undone> {
  const { serverUuid, connector } = to;
  const volume = await storage.volume(volumeId, OWN_NAME);
  if (volume === null) return failed(`Volume ${volumeId} could not be found.`, true);
  if (NOT_READY.includes(volume.status)) return notReady(volume, to);
  const own = await storage.attachments({ volumeId, serverUuid });
  // A volume that an offloaded server got is in use without a host, and its attachment is connected like one that was not finished.
  const isConnected = (id: string) => own.every((one) => one.id !== id || one.connection !== null);
  const finished = volume.attachedTo.filter(
    (one) => one.serverUuid === serverUuid && (one.host !== "" || isConnected(one.attachmentId)),
  );
  const here = finished.find(({ host }) => host === connector.host)?.attachmentId;
  const present = own.find(({ id, connection }) => id === here && connection !== null);
  if (present !== undefined) return connectedBy(storage, present);
  if (volume.status === "error") return broken(volumeId, own.length > 0);
  const unfinished = own.filter(({ id }) => !finished.some((one) => one.attachmentId === id));
  const connected = unfinished.filter(({ connection }) => connection !== null);
  if (connected.length > 0 && (finished.length > 0 || to.slow.has(volumeId))) return adopt(storage, connected, to);
  waitForSlow(volumeId, unfinished, to);
  return finished.length === 0
    ? connectFirst(storage, volume, unfinished, to)
    : connectFurther(storage, volume, unfinished, to);
}

/** Throws where somebody waits until Cinder has made or filled the volume. */
function notReady({ id, status }: CinderVolume, { isUrgent }: Destination): Undone {
  if (!isUrgent) throw new BlockStorageError("unreachable", `volume ${id} is still ${status}`);
  const reason = `Volume ${id} is still ${status} in Cinder, which writes to it. Try again when its status is another one (openstack volume show ${id})`;
  return { ...failed(reason, true), forbidsStart: true };
}

/** Cinder names another file than that to which a guest has written since the latest snapshot. With that file the guest would lack what it has written. */
const otherFile = ({ volumeId, file }: ServerVolume, named: string): Undone => ({
  ...failed(
    `Cinder names the file ${named} for volume ${volumeId}, but the server's guest may have written to ${file}. Nothing was changed. Compare the two (qemu-img info on Cinder's export), and see docs/cinder.md for how to bring them together`,
    true,
  ),
  forbidsStart: true,
});

/** The host does not have the volume, and Cinder connects none in this status. */
function broken(volumeId: string, isServers: boolean): Undone {
  if (!isServers)
    return failed(
      `Volume ${volumeId} could not be made: its status in Cinder is error. Cinder's messages and its volume service's log say why.`,
      true,
    );
  const reason = `The status of volume ${volumeId} in Cinder is error, and no host has it. Cinder's messages (openstack volume message list) and its volume service's log say why. When the volume is usable again, set its status (openstack volume set --state reserved ${volumeId}), and try again`;
  return { ...failed(reason, true), forbidsStart: true };
}

/**
 * Finishes what Cinder has connected, uses what is of this host, and ends what is of another one, where no guest can have it. Finishing takes time, in which
 * another conductor may have taken the task over and given the volume to a guest. So the task is confirmed again before anything ends.
 */
async function adopt(
  storage: BlockStorage,
  connected: readonly CinderAttachment[],
  to: Destination,
): Promise<Connected | Undone> {
  const [{ volumeId } = { volumeId: "" }] = connected;
  if (!(await to.mayWrite())) return UNWANTED;
  for (const { id } of connected) await storage.complete(id);
  const volume = await storage.volume(volumeId, OWN_NAME);
  const hostOf = (id: string) => volume?.attachedTo.find(({ attachmentId }) => attachmentId === id)?.host ?? "";
  const here = connected.find(({ id }) => hostOf(id) === to.connector.host);
  const others = connected.filter(({ id }) => id !== here?.id && hostOf(id) !== "");
  if (others.length > 0 && !(await to.mayWrite())) return UNWANTED;
  for (const { id } of others) await storage.deleteAttachment(id);
  if (here === undefined) throw others.length === 0 ? hostNotShown(volumeId) : changed(volumeId);
  return connectedBy(storage, here);
}

/** Throws while Cinder may still connect the volume for a question that it has not answered. */
function waitForSlow(volumeId: string, unfinished: readonly CinderAttachment[], { slow, nowMs }: Destination): void {
  const sinceMs = slow.get(volumeId);
  if (sinceMs === undefined || unfinished.length === 0) return;
  if (nowMs() - sinceMs < SLOW_MS_MAX)
    throw new BlockStorageError("unreachable", `Cinder is still connecting volume ${volumeId}`);
  slow.delete(volumeId);
}

/** Notes that Cinder has left a question to connect a volume without an answer, or has answered after a long time that it does not know. */
async function noting<Outcome extends { readonly kind: string; readonly isVague?: boolean }>(
  volumeId: string,
  { slow, nowMs }: Destination,
  ask: () => Promise<Outcome>,
): Promise<Outcome> {
  const startedAtMs = nowMs();
  const tookLong = () => nowMs() - startedAtMs >= SLOW_FROM_MS;
  try {
    const outcome = await ask();
    if (outcome.isVague !== true || !tookLong()) return outcome;
  } catch (error) {
    if (error instanceof BlockStorageError && error.code === "unreachable" && tookLong()) slow.set(volumeId, nowMs());
    throw error;
  }
  slow.set(volumeId, nowMs());
  throw new BlockStorageError("unreachable", `Cinder's driver takes long to connect volume ${volumeId}`);
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
  const outcome = await noting(volumeId, to, () => storage.connect(reserved.id, to.connector));
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

async function reserveConnected(storage: BlockStorage, volumeId: string, to: Destination): Promise<Connected | Undone> {
  const { serverUuid, connector } = to;
  if (!(await to.mayWrite())) return UNWANTED;
  const wanted = { volumeId, serverUuid, connector };
  const outcome = await noting(volumeId, to, () => storage.reserve(wanted, OWN_NAME));
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

const hostNotShown = (volumeId: string) =>
  new BlockStorageError("unreachable", `Cinder does not show to which host volume ${volumeId} has been connected`);
