import type { OperationCourse, OperationDefinition } from "./operation-definition.ts";
import {
  ATTACHING,
  ATTACHING_OFFLOADED,
  ATTACHING_TO_BOTH,
  DETACHING,
  DETACHING_FROM_BOTH,
  DETACHING_OFFLOADED,
  EXTENDING,
  MERGING,
  RECONNECTING_KEPT,
  REPLACING,
  REPLACING_ON_BOTH,
  SETTLING,
  STATING_OTHER,
  STATING_OWN,
  SWITCHING,
} from "./operation-routes.ts";
import {
  EXTENDING_VOLUME,
  GAINING_VOLUME,
  GAINING_VOLUME_OFFLOADED,
  GAINING_VOLUME_UNCONFIRMED,
  IN_PLACE,
  LOSING_VOLUME,
  LOSING_VOLUME_OFFLOADED,
  LOSING_VOLUME_UNCONFIRMED,
  RECONNECTING_VOLUME,
  REPLACING_VOLUME,
  REPLACING_VOLUME_UNCONFIRMED,
  SETTLING_VOLUME,
  STATING_VOLUME,
  SWITCHED_VOLUME,
  SWITCHING_VOLUME,
} from "./operation-traits.ts";

/** The course of every operation that settles which of two volumes a guest uses. */
const SETTLES = {
  verb: null,
  allowedFrom: ["ACTIVE", "PAUSED", "SHUTOFF", "VERIFY_RESIZE", "SHELVED", "SOFT_DELETED", "ERROR"],
  finalStatus: "as-before",
  taskStates: { any: "settling_volume" },
} as const satisfies OperationCourse & { readonly verb: null };

/** A host has reported that its guest writes to the new file of a snapshot, of which a restored database knows nothing: the snapshot goes on from there. */
const SWITCHED: typeof SWITCHING = new Map([...SWITCHING].filter(([stage]) => stage !== "switching"));

/** The operations that change a volume of a server. */
export const VOLUME_KINDS = {
  "attach-volume": {
    ...GAINING_VOLUME,
    route: ATTACHING,
    verb: null,
    allowedFrom: ["ACTIVE", "PAUSED", "SHUTOFF", "SHELVED", "SOFT_DELETED"],
    finalStatus: "as-before",
    taskStates: { any: "attaching_volume" },
  },
  "detach-volume": {
    ...LOSING_VOLUME,
    route: DETACHING,
    verb: null,
    allowedFrom: ["ACTIVE", "PAUSED", "SHUTOFF", "SHELVED", "SOFT_DELETED"],
    finalStatus: "as-before",
    taskStates: { any: "detaching_volume" },
  },
  // Kinds of their own, so that conductors that would leave out the source's guest do not take them.
  "attach-volume-unconfirmed": {
    ...GAINING_VOLUME_UNCONFIRMED,
    route: ATTACHING_TO_BOTH,
    verb: null,
    allowedFrom: ["VERIFY_RESIZE"],
    finalStatus: "as-before",
    taskStates: { any: "attaching_volume" },
  },
  "detach-volume-unconfirmed": {
    ...LOSING_VOLUME_UNCONFIRMED,
    route: DETACHING_FROM_BOTH,
    verb: null,
    allowedFrom: ["VERIFY_RESIZE"],
    finalStatus: "as-before",
    taskStates: { any: "detaching_volume" },
  },
  "attach-volume-offloaded": {
    ...GAINING_VOLUME_OFFLOADED,
    route: ATTACHING_OFFLOADED,
    verb: null,
    allowedFrom: ["SHELVED_OFFLOADED"],
    finalStatus: "as-before",
    taskStates: { any: "attaching_volume" },
  },
  "detach-volume-offloaded": {
    ...LOSING_VOLUME_OFFLOADED,
    route: DETACHING_OFFLOADED,
    verb: null,
    allowedFrom: ["SHELVED_OFFLOADED"],
    finalStatus: "as-before",
    taskStates: { any: "detaching_volume" },
  },
  "extend-volume": {
    ...EXTENDING_VOLUME,
    route: EXTENDING,
    verb: null,
    allowedFrom: ["ACTIVE", "PAUSED", "SHUTOFF", "RESCUE"],
    finalStatus: "as-before",
    taskStates: { any: "extending_volume" },
  },
  "swap-volume": {
    ...REPLACING_VOLUME,
    route: REPLACING,
    verb: null,
    allowedFrom: ["ACTIVE", "PAUSED"],
    finalStatus: "as-before",
    taskStates: { any: "swapping_volume" },
  },
  "swap-volume-unconfirmed": {
    ...REPLACING_VOLUME_UNCONFIRMED,
    route: REPLACING_ON_BOTH,
    verb: null,
    allowedFrom: ["VERIFY_RESIZE"],
    finalStatus: "as-before",
    taskStates: { any: "swapping_volume" },
  },
  "reconnect-volume-unconfirmed": {
    ...RECONNECTING_VOLUME,
    route: RECONNECTING_KEPT,
    verb: null,
    allowedFrom: ["VERIFY_RESIZE"],
    finalStatus: "as-before",
    taskStates: { any: "settling_volume" },
  },
  "snapshot-volume": {
    ...SWITCHING_VOLUME,
    route: SWITCHING,
    verb: null,
    allowedFrom: ["ACTIVE", "PAUSED", "SHUTOFF"],
    finalStatus: "as-before",
    taskStates: { any: "snapshotting_volume" },
  },
  // Conductors begin it for a guest that runs, whatever its server's status is.
  "resume-snapshot": {
    ...SWITCHED_VOLUME,
    route: SWITCHED,
    verb: null,
    allowedFrom: ["ACTIVE", "PAUSED", "SHUTOFF", "VERIFY_RESIZE", "SHELVED", "SOFT_DELETED", "ERROR"],
    finalStatus: "as-before",
    taskStates: { any: "snapshotting_volume" },
  },
  "merge-volume": {
    ...IN_PLACE,
    route: MERGING,
    verb: null,
    allowedFrom: ["ACTIVE", "PAUSED"],
    finalStatus: "as-before",
    taskStates: { any: "merging_volume" },
  },
  "settle-volume": { ...SETTLING_VOLUME, ...SETTLES, route: SETTLING },
  "settle-volume-own": { ...STATING_VOLUME, ...SETTLES, route: STATING_OWN },
  "settle-volume-other": { ...STATING_VOLUME, ...SETTLES, route: STATING_OTHER },
} as const satisfies Readonly<Record<string, OperationDefinition>>;
