import type { OperationSignal } from "../cell/operation-store.ts";
import type { OperationKind } from "./operation-kinds.ts";

/** What an operation waits for; see docs/decisions/0006-moves.md. */
export const STAGES = [
  "preparing",
  "handing-over",
  "starting",
  "retracting",
  "cleaning",
  "restoring",
  "retreating",
  "powering",
  "offloading",
] as const;
export type Stage = (typeof STAGES)[number];

/**
 * Where an operation hears what somebody tells it. An abort is heard as long as home is the source; a copy is forced while it is made.
 * Whoever is called off stays called off.
 */
export const HEARD_AT: Readonly<Record<OperationSignal, readonly Stage[]>> = {
  abort: ["preparing", "handing-over"],
  force: ["handing-over"],
};

/** What a stage asks of one host. `start-…` asks nothing of a server that is not to run. */
export type Ask =
  | "prepare"
  | "hand-over"
  | "start-destination"
  | "start-source"
  | "destroy-destination"
  | "destroy-source"
  | "destroy-home"
  | "power"
  | "nothing";

/**
 * Where an answer leads. `another`: the next destination that has room, or `restoring` when the list is used up. Ends: `succeed` - as
 * wanted; `give-up` - the server is what it was before, the reason is recorded; `lost` - it runs nowhere: ERROR.
 */
export type Target = Stage | "another" | "succeed" | "give-up" | "lost";

/** One stage of a route. `gone`: the host is down, and was so for longer than the grace. */
export interface Edges {
  readonly ask: Ask;
  readonly done: Target;
  readonly failed: Target;
  readonly gone: Target;
}

/** The first stage is the one that the operation begins in. */
export type Route = ReadonlyMap<Stage, Edges>;

type RouteList = readonly (readonly [Stage, Ask, done: Target, failed: Target, gone: Target])[];

const route = (stages: RouteList): Route =>
  new Map(stages.map(([stage, ask, done, failed, gone]) => [stage, { ask, done, failed, gone }]));

// A destination that was told to start and cannot be reached may run: the server stays there. One that says that it cannot start is
// left only when it says that nothing is left of the guest, or is down: its first word may have been about a repeated order.
const ARRIVAL: RouteList = [["retracting", "destroy-destination", "another", "retracting", "another"]];
const BACK_TO_SOURCE: RouteList = [["restoring", "start-source", "give-up", "lost", "give-up"]];
const BACK_TO_NOTHING: RouteList = [["restoring", "nothing", "give-up", "give-up", "give-up"]];

/** The source stops and stays as it is, until the move is confirmed or reverted. */
const KEEPING_SOURCE = route([
  ["preparing", "prepare", "handing-over", "another", "another"],
  ["handing-over", "hand-over", "starting", "another", "restoring"],
  ["starting", "start-destination", "succeed", "retracting", "succeed"],
  ...ARRIVAL,
  ...BACK_TO_SOURCE,
]);
/** The source is destroyed once the destination runs. */
const LEAVING_SOURCE = route([
  ["preparing", "prepare", "handing-over", "another", "another"],
  ["handing-over", "hand-over", "starting", "another", "restoring"],
  ["starting", "start-destination", "cleaning", "retracting", "cleaning"],
  ["cleaning", "destroy-source", "succeed", "succeed", "succeed"],
  ...ARRIVAL,
  ...BACK_TO_SOURCE,
]);
/** There is no source, or nobody can ask it. */
const FROM_NOWHERE = route([
  ["preparing", "prepare", "starting", "another", "another"],
  ["starting", "start-destination", "succeed", "retracting", "succeed"],
  ...ARRIVAL,
  ...BACK_TO_NOTHING,
]);
const POWER = route([["powering", "power", "succeed", "give-up", "give-up"]]);

export const ROUTES: Readonly<Record<OperationKind, Route>> = {
  resize: KEEPING_SOURCE,
  migrate: KEEPING_SOURCE,
  "live-migrate": LEAVING_SOURCE,
  rebuild: LEAVING_SOURCE,
  evacuate: FROM_NOWHERE,
  unshelve: FROM_NOWHERE,
  confirm: route([["cleaning", "destroy-source", "succeed", "succeed", "succeed"]]),
  // A destination that cannot be reached may run: the server stays there, and waits for another revert or its confirmation.
  revert: route([
    ["retreating", "destroy-destination", "restoring", "give-up", "give-up"],
    ["restoring", "start-source", "succeed", "lost", "succeed"],
  ]),
  shelve: POWER,
  "shelve-offload": route([
    ["powering", "power", "offloading", "give-up", "give-up"],
    ["offloading", "destroy-home", "succeed", "succeed", "succeed"],
  ]),
  stop: POWER,
  start: POWER,
  reboot: POWER,
  "hard-reboot": POWER,
  pause: POWER,
  unpause: POWER,
};

/** The stage that an operation of this kind begins in. */
export function firstStage(kind: OperationKind): Stage {
  return [...ROUTES[kind].keys()][0] as Stage;
}

/** Where an answer leads from a stage of a kind's route; a stage that the route does not have ends the operation. */
export function edgesOf(kind: OperationKind, stage: string): Edges | null {
  return ROUTES[kind].get(stage as Stage) ?? null;
}
