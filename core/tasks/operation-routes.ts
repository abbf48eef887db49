import type { OperationSignal } from "../cell/operation-store.ts";
import type { OperationKind } from "./operation-kinds.ts";

/** What an operation waits for; see docs/decisions/0006-moves.md. */
export const STAGES = [
  "preparing",
  "handing-over",
  "starting",
  "retracting",
  "verifying",
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
  /** Whether the destination has its guest; one that should run is started if it does not. */
  | "check-destination"
  | "start-source"
  /** Whether the source still has the guest that it kept, which is stopped if it runs. */
  | "check-source"
  | "destroy-destination"
  | "destroy-source"
  | "destroy-home"
  | "power"
  | "nothing";

/**
 * Where an answer leads. `another`: the next destination that has room, or `restoring` when the list is used up. Ends: `succeed` - as
 * wanted; `succeed-keeping` - as wanted, but the guest that was to be destroyed may still exist, so its room is kept until its host says
 * that the guest is gone, or an operator fences that host; `give-up` - the server is what it was before, the reason is recorded; `lost` -
 * it runs nowhere, or nobody knows where: ERROR. From another stage than `restoring` nothing is given back with it, and its guests are kept.
 */
export type Target = Stage | "another" | "succeed" | "succeed-keeping" | "give-up" | "lost";

/** Whether an operation ends there, and as what was wanted. */
export const isSuccess = (target: Target): boolean => target === "succeed" || target === "succeed-keeping";

/**
 * One stage of a route. `gone`: the host is down, and was so for longer than the grace; nobody knows what it did. `fenced`: an operator has
 * forced the host down, which is the word that nothing runs there. An answer that leads to the stage itself is a wait: the host is asked
 * again and again, and what is awaited is shown. Silence never leads to where a guest is destroyed or its room given back.
 */
export interface Edges {
  readonly ask: Ask;
  readonly done: Target;
  readonly failed: Target;
  readonly gone: Target;
  readonly fenced: Target;
}

/** The first stage is the one that the operation begins in. */
export type Route = ReadonlyMap<Stage, Edges>;

type RouteList = readonly (readonly [Stage, Ask, done: Target, failed: Target, gone: Target, fenced: Target])[];

const route = (stages: RouteList): Route =>
  new Map(stages.map(([stage, ask, done, failed, gone, fenced]) => [stage, { ask, done, failed, gone, fenced }]));

// A destination that says that it cannot start is left only when it says that nothing is left of the guest, or is fenced: its first word may
// have been about a repeated order.
const ARRIVAL: RouteList = [["retracting", "destroy-destination", "another", "retracting", "retracting", "another"]];
const BACK_TO_SOURCE: RouteList = [["restoring", "start-source", "give-up", "lost", "give-up", "give-up"]];
const BACK_TO_NOTHING: RouteList = [["restoring", "nothing", "give-up", "give-up", "give-up", "give-up"]];
const CLEANING: RouteList = [
  ["cleaning", "destroy-source", "succeed", "succeed-keeping", "succeed-keeping", "succeed"],
];

/**
 * The source stops and stays as it is, until the move is confirmed or reverted. A destination that was told to start and is away may run, so
 * the server stays there; nothing is lost, because only a confirmation destroys the source, and that hears from the destination first.
 */
const KEEPING_SOURCE = route([
  ["preparing", "prepare", "handing-over", "another", "another", "another"],
  ["handing-over", "hand-over", "starting", "another", "restoring", "restoring"],
  ["starting", "start-destination", "succeed", "retracting", "succeed", "another"],
  ...ARRIVAL,
  ...BACK_TO_SOURCE,
]);
/** The source is destroyed once the destination has said that it runs. Until then the source's guest is kept, stopped. */
const LEAVING_SOURCE = route([
  ["preparing", "prepare", "handing-over", "another", "another", "another"],
  ["handing-over", "hand-over", "starting", "another", "restoring", "restoring"],
  ["starting", "start-destination", "cleaning", "retracting", "starting", "another"],
  ...CLEANING,
  ...ARRIVAL,
  ...BACK_TO_SOURCE,
]);
/**
 * The source is fenced: nobody asks it, and what is left of the server there is kept until the destination has said that it runs. A host that
 * comes back after that destroys its old guest, so the end needs the destination's word, not its silence.
 */
const LEAVING_FENCED = route([
  ["preparing", "prepare", "starting", "another", "another", "another"],
  ["starting", "start-destination", "succeed", "retracting", "starting", "another"],
  ...ARRIVAL,
  ...BACK_TO_NOTHING,
]);
/**
 * There is no source, and no guest whose fate depends on the end: a destination that was told to start and is away may run, so the server
 * stays there.
 */
const FROM_NOWHERE = route([
  ["preparing", "prepare", "starting", "another", "another", "another"],
  ["starting", "start-destination", "succeed", "retracting", "succeed", "another"],
  ...ARRIVAL,
  ...BACK_TO_NOTHING,
]);
const POWER = route([["powering", "power", "succeed", "give-up", "give-up", "give-up"]]);

export const ROUTES: Readonly<Record<OperationKind, Route>> = {
  resize: KEEPING_SOURCE,
  migrate: KEEPING_SOURCE,
  "live-migrate": LEAVING_SOURCE,
  rebuild: LEAVING_SOURCE,
  evacuate: LEAVING_FENCED,
  unshelve: FROM_NOWHERE,
  // The source is destroyed only after the destination has said that it has the guest.
  confirm: route([["verifying", "check-destination", "cleaning", "give-up", "give-up", "give-up"], ...CLEANING]),
  // The destination is destroyed only after the source has said that it has the guest. A destination that was told to destroy its guest is
  // never home again, whatever it answers or fails to answer.
  revert: route([
    ["verifying", "check-source", "retreating", "give-up", "give-up", "give-up"],
    ["retreating", "destroy-destination", "restoring", "retreating", "retreating", "restoring"],
    ["restoring", "start-source", "succeed", "lost", "succeed", "succeed"],
  ]),
  shelve: POWER,
  "shelve-offload": route([
    ["powering", "power", "offloading", "give-up", "give-up", "give-up"],
    ["offloading", "destroy-home", "succeed", "succeed-keeping", "succeed-keeping", "succeed"],
  ]),
  stop: POWER,
  start: POWER,
  reboot: POWER,
  "hard-reboot": POWER,
  pause: POWER,
  unpause: POWER,
};

/**
 * The stage that an operation of this kind is stored with when it begins. A confirmation is stored as older versions store it, so that their
 * conductors know the stage; a conductor of this version hears from the destination first (`beginOperation`).
 */
export function firstStage(kind: OperationKind): Stage {
  return kind === "confirm" ? "cleaning" : ([...ROUTES[kind].keys()][0] as Stage);
}

/** Where an answer leads from a stage of a kind's route; a stage that the route does not have ends the operation. */
export function edgesOf(kind: OperationKind, stage: string): Edges | null {
  return ROUTES[kind].get(stage as Stage) ?? null;
}
