import type { ConductorStream } from "../../core/agent/link.ts";
import type { PowerVerb, SnapshotStep, VolumeStep } from "../../core/agent/power-verbs.ts";
import type { HandOff, OrderReport, Power, Start } from "../../proto/gen/berth/agent.ts";
import { FailureKind, GuestState as WireState } from "../../proto/gen/berth/agent.ts";
import type {
  GuestInterface,
  RescueImage,
  ServerVolume,
  VolumeFile,
  VolumeSnapshot,
} from "../../proto/gen/berth/shared.ts";
import { type HandOffOrder, NotArrivedError } from "./driver.ts";
import { GuestMissingError } from "./guest-missing.ts";
import type { GuestName, GuestState } from "./journal.ts";

/**
 * What a host has found out while it carried out an order: the functions that connect the guest's direct ports, the volumes that it has at its next start, whether the guest still waits for what another host was to
 * hand over, and whether the host is sure that it has lost the guest.
 */
export type OrderFindings = Pick<OrderReport, "devices" | "guestMissing" | "lacksContent" | "volumes">;

/** An order of a conductor for an existing guest, independent of the message that carried it. */
export interface GuestOrder {
  readonly name: GuestName;
  /** Repetitions of an order have the same id. */
  readonly id: string;
  /** Rises with each step of the server's operations. */
  readonly revision: number;
  readonly work: /** A `Start`: no step of an operation. It is answered by a report on the attempt. */
    | { readonly kind: "start"; readonly interfaces: readonly GuestInterface[] | null }
    /** `interfaces` are those with which a guest starts, or is rebooted hard; null leaves them as they are. */
    | { readonly kind: "power"; readonly verb: PowerVerb; readonly interfaces: readonly GuestInterface[] | null }
    | { readonly kind: "snapshot"; readonly imageId: string }
    | { readonly kind: "rescue"; readonly image: RescueImage }
    | { readonly kind: "attach"; readonly volume: ServerVolume }
    | { readonly kind: "detach"; readonly volume: ServerVolume }
    | { readonly kind: "replace"; readonly volume: ServerVolume; readonly step: VolumeStep; readonly mayLack: boolean }
    | {
        readonly kind: "volume-snapshot";
        readonly volume: ServerVolume;
        readonly snapshot: VolumeSnapshot;
        readonly step: SnapshotStep;
      }
    /** `files` are those to which the guest writes as far as the cell's database knows; null if the conductor does not say so. */
    | {
        readonly kind: "hand-off";
        readonly order: HandOffOrder;
        readonly timeoutMs: number;
        readonly files: readonly VolumeFile[] | null;
      };
  /** The files that the guest must use for its volumes when it runs. Those of volumes that are not named stay what they are. */
  readonly files: readonly VolumeFile[];
  /** The state of the guest after the order. Null for an order that leaves the guest as it is. */
  readonly goal: GuestState | null;
  /** Answers the conductor that gave the order. `failed` is empty after a success, and otherwise the reason. */
  answer(to: ConductorStream, failed: string, more?: OrderFindings): void;
}

const HAND_OFF_TIMEOUT_MS_MAX = 24 * 3_600_000;

/** The state of a guest after each verb. Null for a verb that leaves the guest as it is. */
const STATE_AFTER: Readonly<Record<PowerVerb, GuestState | null>> = {
  start: "running",
  stop: "stopped",
  reboot: "running",
  "hard-reboot": "running",
  pause: "paused",
  unpause: "running",
  suspend: "suspended",
  resume: "running",
  unrescue: "running",
  "inject-nmi": null,
};

/** What an order has found out that failed with this error. */
export function findingsOf(error: unknown): OrderFindings {
  if (error instanceof GuestMissingError) return { guestMissing: true };
  return error instanceof NotArrivedError ? { lacksContent: true } : {};
}

export function orderOfStart(message: Start): GuestOrder {
  const name = nameOf(message);
  return {
    name,
    id: `start/${message.revision}`,
    revision: message.revision,
    work: { kind: "start", interfaces: message.interfaces?.interfaces ?? null },
    files: message.files,
    goal: "running",
    answer: (to, failed) => {
      const nothing = { failure: FailureKind.FAILURE_KIND_UNSPECIFIED, reason: "" };
      const refusal = { failure: FailureKind.FAILURE_KIND_RESCHEDULE, reason: failed };
      const said = failed === "" ? nothing : refusal;
      const state = failed === "" ? WireState.GUEST_STATE_RUNNING : WireState.GUEST_STATE_FAILED;
      to.send({ body: { $case: "attempt", value: { ...name, ...said, state, step: "", listensAt: "" } } });
    },
  };
}

export function orderOfPower(message: Power, verb: PowerVerb): GuestOrder {
  const { orderId: id, revision } = message;
  const goal = STATE_AFTER[verb];
  const work = { kind: "power", verb, interfaces: message.interfaces?.interfaces ?? null } as const;
  return { name: nameOf(message), id, revision, work, files: message.files, goal, answer: answering(message) };
}

export function orderOfSnapshot(message: Power): GuestOrder {
  const { orderId: id, revision, imageId } = message;
  const work = { kind: "snapshot", imageId } as const;
  return { name: nameOf(message), id, revision, work, files: [], goal: null, answer: answering(message) };
}

export function orderOfRescue(message: Power, image: RescueImage): GuestOrder {
  const { orderId: id, revision } = message;
  const work = { kind: "rescue", image } as const;
  return {
    name: nameOf(message),
    id,
    revision,
    work,
    files: message.files,
    goal: "rescued",
    answer: answering(message),
  };
}

export function orderOfVolume(message: Power, kind: "attach" | "detach", volume: ServerVolume): GuestOrder {
  const { orderId: id, revision } = message;
  return {
    name: nameOf(message),
    id,
    revision,
    work: { kind, volume },
    files: [],
    goal: null,
    answer: answering(message),
  };
}

export function orderOfVolumeStep(message: Power, step: VolumeStep, volume: ServerVolume): GuestOrder {
  const { orderId: id, revision } = message;
  const work = { kind: "replace", volume, step, mayLack: message.mayLackVolume === true } as const;
  return { name: nameOf(message), id, revision, work, files: [], goal: null, answer: answering(message) };
}

export function orderOfSnapshotStep(
  message: Power,
  step: SnapshotStep,
  volume: ServerVolume,
  snapshot: VolumeSnapshot,
): GuestOrder {
  const { orderId: id, revision } = message;
  const work = { kind: "volume-snapshot", volume, snapshot, step } as const;
  return { name: nameOf(message), id, revision, work, files: [], goal: null, answer: answering(message) };
}

export function orderOfHandOff(message: HandOff): GuestOrder {
  const { toHost, toAttemptId, live, force, listensAt, orderId, revision } = message;
  const name = nameOf(message);
  const order = { ...name, toHost, toAttemptId, live, force, listensAt, orderId };
  const asked = message.timeoutMs > 0 ? message.timeoutMs : HAND_OFF_TIMEOUT_MS_MAX;
  const timeoutMs = Math.min(asked, HAND_OFF_TIMEOUT_MS_MAX);
  const work = { kind: "hand-off", order, timeoutMs, files: message.files?.files ?? null } as const;
  return { name, id: orderId, revision, work, files: [], goal: "stopped", answer: answering(message) };
}

/** Answers an order whose message has an order id. */
export function answering(message: Power | HandOff): GuestOrder["answer"] {
  const { orderId } = message;
  return (to, failed, more) =>
    to.send({ body: { $case: "ordered", value: { ...nameOf(message), orderId, failed, ...more } } });
}

function nameOf({ host, serverUuid, attemptId }: Start | Power | HandOff): GuestName {
  return { host, serverUuid, attemptId };
}
