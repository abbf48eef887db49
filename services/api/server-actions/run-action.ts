import type { OperationKind } from "../../../core/tasks/operation-kinds.ts";
import { type KnownCall, requireAdmin } from "../http/call.ts";
import { badRequest, invalidField, unavailable } from "../http/fault.ts";
import { deleteServer } from "../servers/delete-server.ts";
import type { ImageRule } from "../servers/image-rule.ts";
import type { ServerDeps } from "../servers/server-routes.ts";
import { ActionBody } from "./action-body.ts";
import { type ActionTarget, findTarget, wrongState } from "./action-target.ts";
import { beginInCell } from "./begin-in-cell.ts";
import {
  type MoveChecks,
  type ReadMove,
  readEvacuate,
  readLiveMigrate,
  readMigrate,
  readResize,
  readUnshelve,
} from "./move-actions.ts";
import { readRebuild } from "./rebuild-action.ts";
import type { MoveAcceptor } from "./request-move.ts";
import { readResetState, resetState } from "./reset-state.ts";

export interface ActionDeps extends ServerDeps {
  /** Null: this process moves no servers. */
  readonly mover: MoveAcceptor | null;
}

export interface ActionOptions {
  readonly imageRule: ImageRule;
  readonly resizeToSameHost: boolean;
}

/** One call of an action. */
export interface ActionCall {
  readonly id: string;
  readonly call: KnownCall;
  readonly carrier: Readonly<Record<string, string>>;
  readonly body: ActionBody;
  readonly action: string;
}

/** `server`: the answer shows the server as it is from now on. */
export interface ActionAnswer {
  readonly status: 200 | 202 | 204;
  readonly shows?: "server" | "password";
}

type RunAction = (deps: ActionDeps, one: ActionCall, options: ActionOptions) => Promise<ActionAnswer>;

const ACCEPTED: ActionAnswer = { status: 202 };

/** An operation on the server where it is. */
const inCell =
  (kind: OperationKind, answer: ActionAnswer = ACCEPTED): RunAction =>
  async (deps, { id, call, carrier, action }) => {
    const target = await findTarget(deps, call, { id, action });
    await beginInCell(deps, target, { kind, carrier });
    return answer;
  };

/** A move to a host that a scheduler finds. */
const toHost =
  (read: ReadMove, answer: ActionAnswer = ACCEPTED): RunAction =>
  async (deps, one, options) => {
    const target = await findTarget(deps, one.call, one);
    await move(deps, target, read, one, options);
    return answer;
  };

async function move(
  deps: ActionDeps,
  target: ActionTarget,
  read: ReadMove,
  { body, call, carrier }: ActionCall,
  { resizeToSameHost }: ActionOptions,
): Promise<void> {
  if (deps.mover === null) throw unavailable("This process moves no servers.");
  const checks: MoveChecks = { ...deps, resizeToSameHost };
  await deps.mover.accept(target, await read(checks, target, body, call), call, carrier);
}

const reboot: RunAction = async (deps, one, options) => {
  const type = one.body.refuseOthers("type").require("type").raw("type");
  const word = typeof type === "string" ? type.toUpperCase() : "";
  if (word !== "SOFT" && word !== "HARD") throw invalidField("type", type, "It is not one of ['HARD', 'SOFT'].");
  return inCell(word === "HARD" ? "hard-reboot" : "reboot")(deps, one, options);
};

const rebuild: RunAction = async (deps, one, { imageRule }) => {
  const target = await findTarget(deps, one.call, one);
  const after = await readRebuild({ images: deps.images, imageRule }, target, one.body, one.call);
  await beginInCell(deps, target, { kind: "rebuild", carrier: one.carrier, after });
  return { status: 202, shows: "server" };
};

/** One that was offloaded needs a host; one that is on its host yet is started there. */
const unshelve: RunAction = async (deps, one, options) => {
  const target = await findTarget(deps, one.call, one);
  switch (target.server.status) {
    case "SHELVED_OFFLOADED":
      await move(deps, target, readUnshelve, one, options);
      return ACCEPTED;
    case "SHELVED":
      await readUnshelve({ ...deps, ...options }, target, one.body, one.call);
      await beginInCell(deps, target, { kind: "start", carrier: one.carrier });
      return ACCEPTED;
    default:
      throw wrongState({ action: one.action, uuid: target.server.uuid }, target.server.status);
  }
};

/** A shelved server is no stopped one: it is unshelved. */
const start: RunAction = async (deps, one) => {
  const target = await findTarget(deps, one.call, one);
  if (target.server.status === "SHELVED")
    throw wrongState({ action: one.action, uuid: target.server.uuid }, target.server.status);
  await beginInCell(deps, target, { kind: "start", carrier: one.carrier });
  return ACCEPTED;
};

/** It overtakes whatever is under way. */
const forceDelete: RunAction = async (deps, { id, call, carrier }) => {
  await deleteServer(deps, call, id, carrier);
  return ACCEPTED;
};

const reset: RunAction = async (deps, one) => {
  requireAdmin(one.call, "os-admin-actions:reset_state");
  const state = readResetState(one.body);
  await resetState(await findTarget(deps, one.call, one), state);
  return ACCEPTED;
};

/** By the name that stands in the body. Source: Nova's api-ref, "Servers - run an action". */
const ACTIONS: ReadonlyMap<string, RunAction> = new Map<string, RunAction>([
  ["resize", toHost(readResize)],
  ["migrate", toHost(readMigrate)],
  ["os-migrateLive", toHost(readLiveMigrate)],
  ["evacuate", toHost(readEvacuate, { status: 200, shows: "password" })],
  ["unshelve", unshelve],
  ["rebuild", rebuild],
  ["confirmResize", inCell("confirm", { status: 204 })],
  ["revertResize", inCell("revert")],
  ["shelve", inCell("shelve")],
  ["shelveOffload", inCell("shelve-offload")],
  ["os-start", start],
  ["os-stop", inCell("stop")],
  ["reboot", reboot],
  ["pause", inCell("pause")],
  ["unpause", inCell("unpause")],
  ["forceDelete", forceDelete],
  ["os-resetState", reset],
]);

/** Runs the one action of a body. Refuses a body of no action, or of several, and an action that there is not. */
export function runAction(
  deps: ActionDeps,
  body: Readonly<Record<string, unknown>>,
  one: Omit<ActionCall, "action" | "body">,
  options: ActionOptions,
): Promise<ActionAnswer> {
  const [action, ...others] = Object.keys(body);
  if (action === undefined || others.length > 0) throw badRequest("Malformed request body: it names one action.");
  const run = ACTIONS.get(action);
  if (run === undefined) throw badRequest(`There is no such action: ${action.slice(0, 100)}.`);
  // What stands behind these is not looked at, as in Nova.
  const value = WITHOUT_FIELDS.has(action) ? null : body[action];
  return run(deps, { ...one, action, body: new ActionBody(action, value) }, options);
}

const WITHOUT_FIELDS: ReadonlySet<string> = new Set([
  "confirmResize",
  "revertResize",
  "shelve",
  "shelveOffload",
  "os-start",
  "os-stop",
  "pause",
  "unpause",
  "forceDelete",
]);
