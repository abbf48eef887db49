import type { ReplacementEnd } from "../../adapters/openstack/replacement-ender.ts";
import type { PowerVerb } from "../../core/agent/power-verbs.ts";
import { directPortIds } from "../../core/pinning/direct-ports.ts";
import { destinationOf, type OperationFacts, type PlaceOf } from "../../core/tasks/operation-facts.ts";
import { isLiveMove, OPERATIONS, type OperationKind } from "../../core/tasks/operation-kinds.ts";
import type { ServerStatus } from "../../core/tasks/server.ts";
import { volumeInDoubt, withoutReplacement } from "../../core/tasks/server-volumes.ts";
import type { Tenure } from "../../core/tasks/tenure.ts";
import type { OrderReport, PortDevice } from "../../proto/gen/berth/agent.ts";
import type { ServerVolume } from "../../proto/gen/berth/shared.ts";
import { type MetNeeds, type NeedsOutcome, type NeighbourNeeds, NO_NEEDS } from "./neighbour-needs.ts";
import { ASKED_OF_CINDER, type AskEffect } from "./operation-orders.ts";
import { failed, type Need } from "./patient-calls.ts";
import type { PortStep } from "./port-binder.ts";
import { lackedAtSource } from "./read-refusal.ts";

type Ask = AskEffect["ask"];
type Asked = Pick<AskEffect, "ask" | "step" | "selection"> & { readonly place: PlaceOf };

/** The operations that tell a guest to change over from one volume to another one. */
const REPLACING: readonly OperationKind[] = ["swap-volume", "swap-volume-unconfirmed"];
/** What Cinder is told about the replacement of a volume. */
const ENDS: { readonly [ask in Ask]?: ReplacementEnd } = {
  "leave-replaced": "leave",
  "complete-replacement": "complete",
  "abandon-replacement": "abandon",
};
const STARTING_VERBS: readonly (PowerVerb | null)[] = ["start", "hard-reboot"];
/** The statuses of servers whose boot volume Cinder may be filling. A deleted server that is kept may have been in ERROR before. */
const MAY_BE_FILLED: readonly ServerStatus[] = ["ERROR", "SOFT_DELETED"];
/** Orders that wait for the neighbours and fail with them. There is a place to go back to, or nothing was begun. */
const PATIENT: readonly Ask[] = [
  "prepare",
  "start-destination",
  "attach-volume",
  "attach-at-source",
  "reconnect-at-source",
  "mirror-volume",
  "pivot-volume",
  "switch-volume",
  "merge-volume",
  ...ASKED_OF_CINDER,
];

/**
 * Meets a server's needs on the host of an order, once for each step of the operation. Ports are bound there before an order after which a guest may run
 * that did not run there before, and volumes in Cinder are connected there before the guest may get them. An order to a destination waits for this
 * and fails with it, since there is a place to go back to, and so does the attaching or replacing of a volume. Every other order is given all the same: the host
 * is the server's home, and a guest without its network is better than none. It is not given while Cinder fills a volume of the server with an image, or has failed to,
 * since both would write to the volume. A server in ERROR, or one that was deleted and is restored, may be one whose boot volume Cinder was asked to fill, so its guest is
 * started only if Cinder says that it may be. So is the former guest of a server whose boot volume Cinder has refused to fill, since the volume was taken from its host for that.
 *
 * The ports of a live migration are prepared for the destination before its guest is made there, and bound to it when the source has handed over. The
 * guest of any other move is started only when its ports are connected, as far as builds wait for that. Direct ports are not awaited: Neutron's agent connects
 * one when it finds the port's MAC address on the function, and the host sets that as the last thing before the start, since the server's former guest has the
 * address until it has stopped.
 */
export class OrderBinding {
  readonly #needs: NeighbourNeeds;
  readonly #facts: OperationFacts;
  readonly #tenure: Tenure;
  readonly #devicesOf: (selection: number) => readonly PortDevice[];
  /** The step whose needs are being met. */
  #meetingStep = -1;
  #metStep = -1;
  /** The host was told to change over to another volume and may have done so, or said that it has. */
  #mayHavePivoted = false;
  #met = NO_NEEDS;
  /** Cinder may have been asked to fill the volume: by this conductor, or by the one before, if this one has begun with that question. */
  #mayHaveReimaged = true;
  /** Cinder may have ended the connection of the boot volume, by which the former guest would have it, to fill it. So that guest must not be started before the volume is connected again. */
  #mayBeCutOff: boolean;

  /** `devicesOf` returns the functions that connect the server's direct ports at a destination. */
  constructor(
    needs: NeighbourNeeds,
    facts: OperationFacts,
    tenure: Tenure,
    devicesOf: (selection: number) => readonly PortDevice[] = () => [],
  ) {
    this.#devicesOf = devicesOf;
    this.#needs = needs;
    this.#facts = facts;
    this.#tenure = tenure;
    this.#mayBeCutOff = facts.kind === "reimage";
  }

  /** What the host of a step's order needs to know. Empty for steps that need nothing. */
  needsFor(step: number): MetNeeds {
    return this.#metStep === step ? this.#met : NO_NEEDS;
  }

  /** The ports that are prepared for the host of a live migration's latest step. Empty where Neutron has no such bindings. */
  get preparedPorts(): readonly string[] {
    return [...this.#met.vifs.keys()];
  }

  /**
   * Returns whether the order has to wait. Then `end` is called when it may be given, or with the reason why it may not, and with whether it is unknown what has
   * been done. It is not called for an order that is no longer wanted.
   */
  holdsUp(asked: Asked, isWanted: () => boolean, end: (failed: string, isUnknown: boolean) => void): boolean {
    const { ask, step } = asked;
    if (this.#metStep === step) return false;
    // The order is given when the present meeting has ended, also to a host that was lost and is back by then.
    if (this.#meetingStep === step) return true;
    if (ask !== "start-source") this.#mayBeCutOff = ask === "reimage-volume";
    const needsCinder = this.#needsCinder(ask);
    // A way back waits for nobody.
    const isUrgent = !PATIENT.includes(ask) && !(needsCinder && ask === "power");
    const meeting = this.#meet(asked, isWanted, isUrgent);
    if (meeting === null) return false;
    this.#meetingStep = step;
    // A wait that was abandoned ends only itself: a newer step may be waiting by then.
    const endMeeting = () => {
      if (this.#meetingStep === step) this.#meetingStep = -1;
    };
    const settle = (failed: string, met: MetNeeds, { isUnknown = false, forbidsStart = false } = {}) => {
      endMeeting();
      if (!isWanted()) return;
      if (failed !== "" && (!isUrgent || needsCinder || forbidsStart)) return end(failed, isUnknown);
      this.#metStep = step;
      this.#met = met;
      end("", false);
    };
    meeting.then(
      (outcome: NeedsOutcome) => {
        if (outcome.kind === "met") settle("", outcome);
        else if (outcome.kind === "failed") settle(outcome.reason, NO_NEEDS, outcome);
        else endMeeting();
      },
      (error: Error) => settle(error.message, NO_NEEDS, { isUnknown: ask === "reimage-volume" }),
    );
    return true;
  }

  /**
   * Called when a host has carried out an order. After an order by which the guest runs, the host names the functions that connect its direct ports. Neutron may
   * know those of another host, since the guest has come back, or since the host did not name them before the order. Neutron is told once, and `end` is called
   * then, whether or not it has answered. Calls `end` at once if there is nothing to tell; with a reason if the guest is not what it was asked for (`lackedAtSource`), otherwise with an empty one.
   */
  afterOrder(
    { ask, place }: Pick<Asked, "ask" | "place">,
    { devices, volumes }: Pick<OrderReport, "devices" | "volumes">,
    end: (why: string) => void,
  ): void {
    const tell = () => end(lackedAtSource(this.#facts, { ask }, { volumes }));
    const { uuid, ports, portRequests } = this.#facts.after;
    const server = { uuid, ports, portRequests, volumes: [] };
    const need = { isWanted: () => true, isUrgent: true, tenure: this.#tenure };
    const telling = devices === undefined ? null : this.#needs.meet(server, place, need, { devices: devices.devices });
    if (telling === null) tell();
    else telling.then(tell, tell);
  }

  #meet(asked: Asked, isWanted: () => boolean, isUrgent: boolean): Promise<NeedsOutcome> | null {
    const { ask, place, selection } = asked;
    const { uuid, ports, portRequests } = this.#facts.after;
    const need = { isWanted, isUrgent, tenure: this.#tenure };
    if (ask === "reimage-volume") return this.#reimage(selection, need);
    this.#mayHaveReimaged = false;
    const snapshot = this.#meetSnapshot(asked, need);
    if (snapshot !== null) return snapshot;
    const end = ENDS[ask];
    if (end !== undefined) return this.#facts.volume && this.#needs.endReplacement(uuid, this.#facts.volume, end, need);
    // Only the operation that has told the guest to change over knows that. A later one has Cinder asked again.
    if (ask === "keep-volume" && REPLACING.includes(this.#facts.kind)) this.#mayHavePivoted = true;
    // A guest that may use the other volume already goes on to its end, whatever Cinder says. If Cinder does not agree with that end, an operator decides.
    if (ask === "pivot-volume" && !this.#mayHavePivoted)
      return this.#facts.volume && this.#needs.confirmReplacement(this.#facts.volume, need);
    const doubtful = ask === "prepare" ? volumeInDoubt(this.#facts.after) : undefined;
    if (doubtful !== undefined) return Promise.resolve(failed(inDoubt(doubtful), true));
    const step = this.#portStep(ask);
    const server = { uuid, ports: step === null ? [] : ports, portRequests, volumes: this.#volumesFor(ask) };
    const home = step === "leave" ? destinationOf(this.#facts, selection) : place;
    if (home === null) return null;
    const devices = ask === "start-destination" ? this.#devicesOf(selection) : [];
    const wish = { step: step ?? "bind", devices } as const;
    const meeting = this.#needs.meet(server, home, need, wish);
    const waits = ask === "start-destination" && !isLiveMove(this.#facts.kind);
    return meeting === null || !waits ? meeting : this.#plugged(meeting, home.host, isWanted);
  }

  /** Null for a question that is not about a snapshot of a volume. */
  #meetSnapshot({ ask, place }: Asked, need: Need): Promise<NeedsOutcome> | null {
    const { before, volume: after, snapshot } = this.#facts;
    if (!snapshot || after === null) return null;
    const volume = before.volumes.find(({ volumeId }) => volumeId === after.volumeId) ?? after;
    const of = {
      serverUuid: before.uuid,
      volume,
      snapshot,
      work: this.#facts.kind === "merge-volume" ? "deleting" : "creating",
    } as const;
    switch (ask) {
      case "switch-volume":
      case "merge-volume":
        return this.#needs.confirmSnapshot(of, { ...need, host: place.host });
      case "announce-snapshot":
        return this.#needs.endSnapshot("announce", of, need);
      case "deny-snapshot":
        return this.#needs.endSnapshot("deny", of, need);
      default:
        return null;
    }
  }

  #reimage(selection: number, need: Need): Promise<NeedsOutcome> | null {
    const { volume, after } = this.#facts;
    const mayBeAsked = this.#mayHaveReimaged;
    this.#mayHaveReimaged = true;
    const attemptId = destinationOf(this.#facts, selection)?.attemptId ?? "";
    return volume && this.#needs.reimage(after.uuid, volume, { ...need, mayBeAsked, attemptId });
  }

  /** Whether the guest must not be started without an answer of Cinder. */
  #needsCinder(ask: Ask): boolean {
    const { after } = this.#facts;
    return (
      (this.#mayBeCutOff || mayBeFilled(this.#facts)) &&
      this.#starts(ask) &&
      after.volumes.some((one) => one.isRoot && one.inCinder)
    );
  }

  async #plugged(meeting: Promise<NeedsOutcome>, host: string, isWanted: () => boolean): Promise<NeedsOutcome> {
    const met = await meeting;
    if (met.kind !== "met") return met;
    const { after } = this.#facts;
    const direct = directPortIds(after);
    const awaited = { ...after, ports: after.ports.filter(({ portId }) => !direct.has(portId)) };
    const plugged = await this.#needs.plugged(awaited, host, isWanted);
    return plugged === null || plugged.kind === "plugged" ? met : plugged;
  }

  #volumesFor(ask: Ask) {
    const { after, volume } = this.#facts;
    // By then Cinder has the right one of two volumes under the volume's own id.
    if (ask === "reconnect-at-source") return volume === null ? [] : [withoutReplacement(volume)];
    if (["attach-volume", "attach-at-source", "mirror-volume"].includes(ask)) return volume === null ? [] : [volume];
    return this.#starts(ask) || ask === "prepare" ? after.volumes : [];
  }

  /** Null for an order that changes nothing about the ports. */
  #portStep(ask: Ask): PortStep | null {
    if (isLiveMove(this.#facts.kind)) {
      if (ask === "prepare") return "prepare";
      if (ask === "start-source") return "return";
      if (ask === "destroy-source") return "leave";
    }
    return this.#starts(ask) ? "bind" : null;
  }

  #starts(ask: Ask): boolean {
    if (ask === "power") return STARTING_VERBS.includes(OPERATIONS[this.#facts.kind].verb);
    return ask === "start-destination" || ask === "check-destination" || ask === "start-source";
  }
}

/** Whether the status of the server leaves open that Cinder still fills its boot volume for an operation that has ended. */
export const mayBeFilled = ({ statusBefore }: Pick<OperationFacts, "statusBefore">): boolean =>
  MAY_BE_FILLED.includes(statusBefore);

/** Whether an order that may start a guest waits for Cinder, and fails with it. */
export const waitsForCinder = (ask: Ask): boolean => PATIENT.includes(ask);

/** The server's former host alone knows which of the two its guest has used. */
const inDoubt = ({ volumeId, replacedBy }: ServerVolume): string =>
  `it is unknown whether the guest has used volume ${volumeId} or volume ${replacedBy}, which was to replace it: keep the server on its host, where a hard reboot starts it, and settle it (berth volume settle), or detach the volume, before it is moved (docs/cinder.md)`;
