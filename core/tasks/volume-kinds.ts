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
  REPLACING,
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
  REPLACING_VOLUME,
  SETTLING_VOLUME,
  STATING_VOLUME,
  SWITCHING_VOLUME,
} from "./operation-traits.ts";

/** The course of every operation that settles which of two volumes a guest uses. */
const SETTLES = {
  verb: null,
  allowedFrom: ["ACTIVE", "PAUSED", "SHUTOFF", "SHELVED", "SOFT_DELETED", "ERROR"],
  finalStatus: "as-before",
  taskStates: { any: "settling_volume" },
} as const satisfies OperationCourse & { readonly verb: null };

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
    // Nova allows it in VERIFY_RESIZE, too, where a guest at the source may still need the volume.
    allowedFrom: ["ACTIVE", "PAUSED"],
    finalStatus: "as-before",
    taskStates: { any: "swapping_volume" },
  },
  "snapshot-volume": {
    ...SWITCHING_VOLUME,
    route: SWITCHING,
    verb: null,
    allowedFrom: ["ACTIVE", "PAUSED", "SHUTOFF"],
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
