import { isLiveMove, OPERATIONS, type OperationKind } from "../../../../core/tasks/operation-kinds.ts";
import type { ServerStatus } from "../../../../core/tasks/server.ts";
import { bootsFromVolume } from "../../../../core/tasks/server-volumes.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import { callerOf, requireRule } from "../../http/call.ts";
import { invalidField, unavailable } from "../../http/fault.ts";
import { MINOR_MAX } from "../../http/microversion.ts";
import type { ActionFacts } from "../../http/route-facts.ts";
import { addFixedIp, removeFixedIp } from "../floating-ips/fixed-ip-actions.ts";
import { addFloatingIp, removeFloatingIp } from "../floating-ips/floating-ip-actions.ts";
import { refreshRequests } from "../neutron-ports/refresh-requests.ts";
import { CONSOLE_TYPES, type ConsoleProtocol, openRemoteConsole } from "../remote-consoles/open-remote-console.ts";
import { addSecurityGroup, removeSecurityGroup } from "../security-groups/security-group-actions.ts";
import { refuseInDoubt } from "../server-volumes/refuse-in-doubt.ts";
import { refuseVolumeBacked } from "../server-volumes/refuse-volume-backed.ts";
import { deleteServer } from "../servers/delete-server.ts";
import { noteAction } from "../servers/note-action.ts";
import { lockServer, readLockReason, unlockServer } from "../servers/server-lock.ts";
import { writeChanges } from "../servers/update-server.ts";
import { restoreServer } from "../soft-deletion/restore-server.ts";
import { ACTION_VALUE } from "./action-body.ts";
import type { ActionCall, ActionDeps, ActionOptions, ActionResult, RunAction } from "./action-call.ts";
import { type ActionTarget, findTarget, wrongState } from "./action-target.ts";
import { beginInCell } from "./begin-in-cell.ts";
import { changePassword } from "./change-password.ts";
import { readConsoleLength, readConsoleOutput } from "./console-output.ts";
import { injectNetworkInfo } from "./inject-network-info.ts";
import {
  type MoveChecks,
  type ReadMove,
  readEvacuate,
  readLiveMigrate,
  readMigrate,
  readResize,
  readUnshelve,
  requireMayUnshelve,
} from "./move-actions.ts";
import {
  type CheckBody,
  checkEvacuate,
  checkLiveMigrate,
  checkMigrate,
  checkResize,
  checkUnshelve,
} from "./move-bodies.ts";
import { readReimage } from "./read-reimage.ts";
import { checkRebuild, readRebuild } from "./rebuild-action.ts";
import { rescue } from "./rescue-action.ts";
import { readResetState, refuseUnfilled, resetState } from "./reset-state.ts";
import { acceptSnapshot, acceptVolumeSnapshots, readBackup, readSnapshot, shelvedImage } from "./snapshot-actions.ts";

const ACCEPTED: ActionResult = { status: 202 };

/** Runs an operation that keeps the server on its host. */
const inCell =
  (kind: OperationKind, answer: ActionResult = ACCEPTED): RunAction =>
  async (deps, { id, call, carrier, action }) => {
    const target = await findTarget(deps, call, { id, action });
    await beginInCell(deps, target, { kind, carrier, askedBy: callerOf(call) });
    return answer;
  };

/**
 * Confirms or reverts a move. What the server no longer needs is given back to its project's quota as soon as that has ended. A charge that is found with a migration is another
 * call's, which may still have to have its resize accepted.
 */
const settleMove =
  (kind: "confirm" | "revert", answer: ActionResult = ACCEPTED): RunAction =>
  async (deps, { id, call, carrier, action }) => {
    const target = await findTarget(deps, call, { id, action });
    const charge = (await deps.resizes?.chargeOf(target.server.uuid)) ?? null;
    // A revert destroys the guest that alone knows which of two volumes it has used.
    const after = (now: ServerSpec): ServerSpec => {
      refuseInDoubt({ action, server: { ...target.server, spec: now } });
      return now;
    };
    const move = await beginInCell(deps, target, {
      kind,
      carrier,
      askedBy: callerOf(call),
      ...(kind === "revert" && { after }),
    });
    if (charge !== null && move?.kind === "resize") deps.resizes?.hasten(charge);
    return answer;
  };

/** Runs a move to a host that a scheduler chooses. */
const toHost =
  (check: CheckBody, read: ReadMove, answer: ActionResult = ACCEPTED): RunAction =>
  async (deps, one, options) => {
    check(one.body, one.call);
    const target = await findTarget(deps, one.call, one);
    await move(deps, target, read, one, options);
    return answer.shows === "password" ? { ...answer, givenPassword: one.body.password() } : answer;
  };

async function move(
  deps: ActionDeps,
  target: ActionTarget,
  read: ReadMove,
  { body, call, carrier }: ActionCall,
  { resizeToSameHost, evacuateUnfenced }: ActionOptions,
): Promise<void> {
  if (deps.mover === null) throw unavailable("This process does not move servers.");
  const checks: MoveChecks = { ...deps, resizeToSameHost, evacuateUnfenced };
  const requested = await read(checks, target, body, call);
  // The note stays open, so that the settler of ports looks for bindings that the migration has left behind.
  if (isLiveMove(requested.kind))
    await deps.neutron?.notes.openNotes([{ serverUuid: target.server.uuid, keptPorts: [] }]);
  if (deps.neutron !== null) await refreshRequests(deps.neutron, target);
  await deps.mover.accept(target, requested, call, carrier);
  const { zone, manualDisk } = requested;
  if (manualDisk !== undefined) await writeChanges(deps, target.server.uuid, () => ({ manualDisk }));
  // An earlier change of the zone would hide the zone that this move gives the server.
  if (zone !== undefined && target.record.changes?.availabilityZone !== undefined)
    await writeChanges(deps, target.server.uuid, () => ({ availabilityZone: zone }));
}

const reboot: RunAction = async (deps, one, options) => {
  const type = one.body.refuseOthers("type").require("type").raw("type");
  const word = typeof type === "string" ? type.toUpperCase() : "";
  if (word !== "SOFT" && word !== "HARD") throw invalidField("type", type, "It is not one of ['HARD', 'SOFT'].");
  return inCell(word === "HARD" ? "hard-reboot" : "reboot")(deps, one, options);
};

const rebuild: RunAction = async (deps, one, { imageRule }) => {
  const givenPassword = one.body.password();
  checkRebuild(one.body, one.call);
  const target = await findTarget(deps, one.call, one);
  const read = await readRebuild({ ...deps, imageRule }, target, one.body, one.call);
  const { after, changes, prepare } = read;
  const volume = await readReimage(deps, target, one.call, read);
  const asked = { carrier: one.carrier, askedBy: callerOf(one.call), after, prepare };
  await beginInCell(
    deps,
    target,
    volume === null ? { kind: "rebuild", ...asked } : { kind: "reimage", ...asked, volume },
  );
  // The changes are written after the cell has begun the rebuild, because it may refuse. The cell's new spec contains them, too, but older
  // changes in the API database would hide them.
  if (Object.keys(changes).length > 0) await writeChanges(deps, target.server.uuid, () => changes);
  return { status: 202, shows: "server", givenPassword, after };
};

/** Gives back the host of a server that is or will be shelved. Its local disk is kept as an image. Refuses a server in any other status. */
async function offload(
  deps: ActionDeps,
  one: ActionCall,
  { imagesPerProjectMax }: ActionOptions,
  { target, allowedFrom }: { readonly target: ActionTarget; readonly allowedFrom: readonly ServerStatus[] },
): Promise<ActionResult> {
  const { uuid, status } = target.server;
  if (!allowedFrom.includes(status)) throw wrongState({ action: one.action, uuid }, status);
  refuseInDoubt(target);
  if (deps.images !== null && !bootsFromVolume(target.server.spec))
    await acceptSnapshot(deps, target, shelvedImage(target), { ...one, ownedMax: imagesPerProjectMax, allowedFrom });
  else {
    const { carrier, call } = one;
    await beginInCell(deps, target, { kind: "shelve-offload", carrier, askedBy: callerOf(call), allowedFrom });
  }
  return ACCEPTED;
}

/** Source: `shelve_offload` of Nova's compute API, which offloads only what is shelved. */
const shelveOffload: RunAction = async (deps, one, options) =>
  offload(deps, one, options, { target: await findTarget(deps, one.call, one), allowedFrom: ["SHELVED"] });

/** Shelves a server and, when shelved servers are offloaded at once, gives back its host in the same operation. */
const shelve: RunAction = async (deps, one, options) => {
  const target = await findTarget(deps, one.call, one);
  if (options.shelvedOffloadTime === 0)
    return offload(deps, one, options, { target, allowedFrom: OPERATIONS.shelve.allowedFrom });
  await beginInCell(deps, target, { kind: "shelve", carrier: one.carrier, askedBy: callerOf(one.call) });
  return ACCEPTED;
};

/** Unshelves a server. An offloaded server needs a host; any other is started on its own host. */
const unshelve: RunAction = async (deps, one, options) => {
  checkUnshelve(one.body, one.call);
  requireMayUnshelve(one.body, one.call);
  const target = await findTarget(deps, one.call, one);
  switch (target.server.status) {
    case "SHELVED_OFFLOADED": {
      // The note comes first, and the server's cell says later what has become of it, so it does no harm if the call is refused.
      const { diskImageRef } = target.server.spec;
      if (diskImageRef !== "") await deps.images?.noteUnshelving(diskImageRef);
      await move(deps, target, readUnshelve, one, options);
      return ACCEPTED;
    }
    case "SHELVED":
      await readUnshelve({ ...deps, ...options }, target, one.body, one.call);
      await beginInCell(deps, target, { kind: "start", carrier: one.carrier, askedBy: callerOf(one.call) });
      return ACCEPTED;
    default:
      throw wrongState({ action: one.action, uuid: target.server.uuid }, target.server.status);
  }
};

/** Nova refuses any other value than null here. */
const crashDump: RunAction = async (deps, one, options) => {
  if (!one.body.isNull) throw invalidField(one.action, {}, "It is not of type 'null'.");
  return inCell("crash-dump")(deps, one, options);
};

/** Starts a stopped server. A shelved one must be unshelved instead. */
const start: RunAction = async (deps, one) => {
  const target = await findTarget(deps, one.call, one);
  if (target.server.status === "SHELVED")
    throw wrongState({ action: one.action, uuid: target.server.uuid }, target.server.status);
  await beginInCell(deps, target, { kind: "start", carrier: one.carrier, askedBy: callerOf(one.call) });
  return ACCEPTED;
};

/** Deletes the server for good, even while another operation is under way. */
const forceDelete: RunAction = async (deps, { id, call, carrier }) => {
  await deleteServer(deps, call, id, { carrier, force: true });
  return ACCEPTED;
};

const restore: RunAction = async (deps, one) => {
  await restoreServer(deps, one.call, one);
  return ACCEPTED;
};

const reset: RunAction = async (deps, one) => {
  const state = readResetState(one.body);
  const target = await findTarget(deps, one.call, one);
  // Its request would still say that it is deleted: restore it, or delete it for good.
  if (target.server.status === "SOFT_DELETED")
    throw wrongState({ action: one.action, uuid: target.server.uuid }, "SOFT_DELETED");
  if (state === "ACTIVE") await refuseUnfilled(deps.volumes, target);
  await resetState(target, state);
  await noteAction(deps, one.call, { serverUuid: target.server.uuid, action: "resetState", host: null });
  return ACCEPTED;
};

/** Copies the server's disk, or makes snapshots of its volumes, for a new image. A backup that is not to be kept names no image. */
const snapshot: RunAction = async (deps, one, { imagesPerProjectMax }) => {
  const requested = one.action === "createBackup" ? readBackup(one.body) : readSnapshot(one.body);
  const target = await findTarget(deps, one.call, one);
  const { spec } = target.server;
  if (one.action === "createImage" && bootsFromVolume(spec)) {
    requireRule(one.call, "servers:create_image:allow_volume_backed", { projectId: spec.projectId });
    const ownedMax = imagesPerProjectMax;
    return { status: 202, imageId: await acceptVolumeSnapshots(deps, target, requested, { ...one, ownedMax }) };
  }
  refuseVolumeBacked(target);
  const imageId = await acceptSnapshot(deps, target, requested, { ...one, ownedMax: imagesPerProjectMax });
  return { status: 202, ...(requested.rotation !== 0 && { imageId }) };
};

const lock: RunAction = async (deps, { call, id, body }) => {
  await lockServer(deps, call, id, readLockReason(body, call.minor));
  return ACCEPTED;
};

const unlock: RunAction = async (deps, { call, id }) => {
  await unlockServer(deps, call, id);
  return ACCEPTED;
};

const consoleOutput: RunAction = async (deps, { call, id, body }) => {
  const lines = readConsoleLength(body);
  return { status: 200, body: { output: await readConsoleOutput(deps, call, { id, lines }) } };
};

/** Opens a console for a client, as before 2.6. */
const remoteConsole =
  (protocol: ConsoleProtocol): RunAction =>
  async (deps, { call, id, body }, options) => {
    const type = body.refuseOthers("type").require("type").raw("type");
    const known = CONSOLE_TYPES[protocol].find((one) => one === type);
    if (known === undefined)
      throw invalidField("type", type, `It is not one of ['${CONSOLE_TYPES[protocol].join("', '")}'].`);
    const url = await openRemoteConsole(deps, call, { id, protocol, type: known }, options);
    return { status: 200, body: { console: { type: known, url } } };
  };

/** One kind of action. */
export interface ServerAction extends ActionFacts {
  readonly run: RunAction;
  /** Up to this microversion the value of the action in the body is ignored, as in Nova. Without it, the value is always read. */
  readonly ignoredUntil?: number;
}

type OtherFacts = Omit<ServerAction, "run" | "rule" | "value">;

function action(rule: string, run: RunAction, facts: OtherFacts = {}): ServerAction {
  return { rule, run, ...facts, ...(facts.ignoredUntil === undefined && { value: ACTION_VALUE }) };
}

/** From 2.6 on, consoles are opened by a route of their own. */
export const REMOTE_CONSOLE_FACTS = { until: 5 };
/** The actions about addresses end: clients call Neutron instead. */
const ADDRESS_FACTS = { until: 43 };
const WITHOUT_FIELDS = { ignoredUntil: MINOR_MAX };
const LOCK_FIELDS_FROM_MINOR = 73;

/** The actions by their name in the body. Source: Nova's api-ref, "Servers - run an action", and the defaults of its policies. */
export const SERVER_ACTIONS: ReadonlyMap<string, ServerAction> = new Map([
  ["resize", action("servers:resize", toHost(checkResize, readResize))],
  ["migrate", action("os-migrate-server:migrate", toHost(checkMigrate, readMigrate))],
  ["os-migrateLive", action("os-migrate-server:migrate_live", toHost(checkLiveMigrate, readLiveMigrate))],
  ["evacuate", action("os-evacuate", toHost(checkEvacuate, readEvacuate, { status: 200, shows: "password" }))],
  ["unshelve", action("os-shelve:unshelve", unshelve)],
  ["rebuild", action("servers:rebuild", rebuild)],
  ["confirmResize", action("servers:confirm_resize", settleMove("confirm", { status: 204 }), WITHOUT_FIELDS)],
  ["revertResize", action("servers:revert_resize", settleMove("revert"), WITHOUT_FIELDS)],
  ["shelve", action("os-shelve:shelve", shelve, WITHOUT_FIELDS)],
  ["shelveOffload", action("os-shelve:shelve_offload", shelveOffload, WITHOUT_FIELDS)],
  ["os-start", action("servers:start", start, WITHOUT_FIELDS)],
  ["os-stop", action("servers:stop", inCell("stop"), WITHOUT_FIELDS)],
  ["reboot", action("servers:reboot", reboot)],
  ["pause", action("os-pause-server:pause", inCell("pause"), WITHOUT_FIELDS)],
  ["unpause", action("os-pause-server:unpause", inCell("unpause"), WITHOUT_FIELDS)],
  ["suspend", action("os-suspend-server:suspend", inCell("suspend"), WITHOUT_FIELDS)],
  ["resume", action("os-suspend-server:resume", inCell("resume"), WITHOUT_FIELDS)],
  ["trigger_crash_dump", action("servers:trigger_crash_dump", crashDump, { since: 17 })],
  ["rescue", action("os-rescue", rescue)],
  ["unrescue", action("os-unrescue", inCell("unrescue"), WITHOUT_FIELDS)],
  ["createImage", action("servers:create_image", snapshot)],
  ["createBackup", action("os-create-backup", snapshot)],
  ["lock", action("os-lock-server:lock", lock, { ignoredUntil: LOCK_FIELDS_FROM_MINOR - 1 })],
  ["unlock", action("os-lock-server:unlock", unlock, WITHOUT_FIELDS)],
  ["os-getConsoleOutput", action("os-console-output", consoleOutput)],
  ["os-getVNCConsole", action("os-remote-consoles", remoteConsole("vnc"), REMOTE_CONSOLE_FACTS)],
  ["os-getSPICEConsole", action("os-remote-consoles", remoteConsole("spice"), REMOTE_CONSOLE_FACTS)],
  ["os-getSerialConsole", action("os-remote-consoles", remoteConsole("serial"), REMOTE_CONSOLE_FACTS)],
  ["forceDelete", action("os-deferred-delete:force", forceDelete, WITHOUT_FIELDS)],
  ["restore", action("os-deferred-delete:restore", restore, WITHOUT_FIELDS)],
  ["changePassword", action("os-admin-password", changePassword)],
  ["injectNetworkInfo", action("os-admin-actions:inject_network_info", injectNetworkInfo, WITHOUT_FIELDS)],
  ["addFloatingIp", action("os-floating-ips:add", addFloatingIp, ADDRESS_FACTS)],
  ["removeFloatingIp", action("os-floating-ips:remove", removeFloatingIp, ADDRESS_FACTS)],
  ["addFixedIp", action("os-multinic:add", addFixedIp, ADDRESS_FACTS)],
  ["removeFixedIp", action("os-multinic:remove", removeFixedIp, ADDRESS_FACTS)],
  ["addSecurityGroup", action("os-security-groups:add", addSecurityGroup)],
  ["removeSecurityGroup", action("os-security-groups:remove", removeSecurityGroup)],
  ["os-resetState", action("os-admin-actions:reset_state", reset)],
]);
