/** The stages of operations; docs/decisions/0006-moves.md explains them. */
export const STAGES = [
  "preparing",
  "handing-over",
  "recalling",
  "reimaging",
  "starting",
  "retracting",
  "verifying",
  "cleaning",
  "restoring",
  "forsaking",
  "retreating",
  "powering",
  "offloading",
  "snapshotting",
  "rescuing",
  "undoing",
  "undoing-kept",
  "returning-kept",
  "attaching",
  "attaching-kept",
  "detaching",
  "detaching-kept",
  "extending",
  "mirroring",
  "pivoting",
  "completing",
  "exchanging",
  "unmirroring",
  "unpivoting",
  "calling-off",
  "switching",
  "announcing",
  "returning",
  "denying",
  "merging",
] as const;
export type Stage = (typeof STAGES)[number];

/** The order of a stage to one host. The `start-…` asks are skipped for a server that should not run. */
export type Ask =
  | "prepare"
  | "hand-over"
  | "start-destination"
  /** The destination confirms that it has its guest, and starts the guest if it should run and does not. */
  | "check-destination"
  | "start-source"
  /** The source confirms that it still has the guest that it kept, and stops the guest if it runs. */
  | "check-source"
  | "destroy-destination"
  | "destroy-source"
  | "destroy-home"
  | "power"
  /** The host copies the guest's disk into an image that has the task's id. */
  | "snapshot"
  /** The host boots the guest from the task's rescue image. */
  | "rescue"
  /** The host brings the guest back into the state that it had before a rescue that failed. */
  | "undo-rescue"
  /** The host connects the task's volume to the guest. */
  | "attach-volume"
  /** The host disconnects the task's volume from the guest. */
  | "detach-volume"
  /** The host disconnects the volume that it could not connect, since it may have done so all the same. */
  | "undo-attach"
  /** The source of a move that waits for its confirmation connects the task's volume to the guest that it keeps, which gets it if it is started again. */
  | "attach-at-source"
  /** The source disconnects the task's volume from the guest that it keeps. */
  | "detach-at-source"
  /** The source disconnects the volume that could not be connected to both guests. */
  | "undo-at-source"
  /** The source connects the task's volume again, as Cinder has it by then, to the guest that it keeps. */
  | "reconnect-at-source"
  /** The host tells the guest that the task's volume has grown. */
  | "extend-volume"
  /** The host copies the task's volume to the one that replaces it, and keeps both the same from then on. */
  | "mirror-volume"
  /** The guest uses the other volume from now on, which is the same as its own. */
  | "pivot-volume"
  /** The host ends the copying, and confirms that the guest uses its own volume. */
  | "keep-volume"
  /** Cinder, and no host, is told that no host has the task's volume any longer. */
  | "leave-replaced"
  /** Cinder, and no host, is told that the other volume takes the place of the task's volume. */
  | "complete-replacement"
  /** Cinder, and no host, is told that the task's volume stays what it was. */
  | "abandon-replacement"
  /** The guest writes to the new file of the task's snapshot from now on. */
  | "switch-volume"
  /** The guest writes to the file from which it was to be switched, which gets what the new file has. */
  | "return-volume"
  /** The host merges files of the task's volume, so that Cinder can delete one of them with the snapshot. */
  | "merge-volume"
  /** Cinder, and no host, is told that the guest's part of the snapshot is done, and says whether it has gone on. */
  | "announce-snapshot"
  /** Cinder, and no host, is told that the guest's part of the snapshot has failed. */
  | "deny-snapshot"
  /** Cinder, and no host, fills the task's volume with an image. */
  | "reimage-volume"
  | "nothing";

/**
 * The place to which an answer leads: another stage, or an end.
 * - `another`: the next destination that has room, or `restoring` when no destination is left.
 * - `succeed`: the operation succeeded.
 * - `succeed-keeping`: it succeeded, but the guest that it should have destroyed may still exist. The guest's room is kept until
 *   the guest's host says that the guest is gone, or an operator fences that host.
 * - `give-up`: the server is what it was before, and the reason is recorded.
 * - `lost`: the server runs nowhere, or nobody knows where it runs, and its status becomes ERROR. Unless this end follows `restoring`, no
 *   room is given back and no guest is destroyed.
 */
export type Target = Stage | "another" | "succeed" | "succeed-keeping" | "give-up" | "lost";

/** Whether a move brings its server back to the source, whether or not the guest there is started again. */
export const isWayBack = (target: Target): boolean => target === "restoring" || target === "forsaking";

/** Whether the target is an end at which the operation succeeded. */
export const isSuccess = (target: Target): boolean => target === "succeed" || target === "succeed-keeping";

/**
 * One stage of a route: what it asks, and where each answer leads. `gone`: the host has been down for longer than the grace, and it is
 * unknown what it did. `fenced`: an operator has forced the host down, and thereby states that nothing runs there. An answer that leads back to the
 * same stage is a wait: the host is asked again and again, and people are shown what the operation waits for. Silence never leads to a stage
 * or end that destroys a guest or gives its room back.
 */
export interface Edges<A extends Ask = Ask> {
  readonly ask: A;
  readonly done: Target;
  readonly failed: Target;
  readonly gone: Target;
  readonly fenced: Target;
}

/**
 * The operation begins in the first stage. `A` is the type of the stages' questions, so that a route that asks for a power verb can be told
 * apart.
 */
export type Route<A extends Ask = Ask> = ReadonlyMap<Stage, Edges<A>>;

type RouteList<A extends Ask> = readonly (readonly [
  Stage,
  A,
  done: Target,
  failed: Target,
  gone: Target,
  fenced: Target,
])[];

const route = <A extends Ask>(stages: RouteList<A>): Route<A> =>
  new Map(stages.map(([stage, ask, done, failed, gone, fenced]) => [stage, { ask, done, failed, gone, fenced }]));

// A destination that says that it cannot start is left only after it has said that nothing of the guest is left, or after it was fenced: its
// first answer may have been about a repeated order.
const ARRIVAL: RouteList<"destroy-destination"> = [
  ["retracting", "destroy-destination", "another", "retracting", "retracting", "another"],
];
const BACK_TO_SOURCE: RouteList<"start-source"> = [
  ["restoring", "start-source", "give-up", "lost", "give-up", "give-up"],
];
const BACK_TO_NOTHING: RouteList<"nothing"> = [["restoring", "nothing", "give-up", "give-up", "give-up", "give-up"]];
const CLEANING: RouteList<"destroy-source"> = [
  ["cleaning", "destroy-source", "succeed", "succeed-keeping", "succeed-keeping", "succeed"],
];

/**
 * The source's guest is stopped and kept until the move is confirmed or reverted. A destination that was told to start and is away may run,
 * so the server stays there. Nothing is lost by that: only a confirmation destroys the source, and it needs the destination's answer first.
 */
export const KEEPING_SOURCE = route([
  ["preparing", "prepare", "handing-over", "another", "another", "another"],
  ["handing-over", "hand-over", "starting", "another", "restoring", "restoring"],
  ["starting", "start-destination", "succeed", "retracting", "succeed", "another"],
  ...ARRIVAL,
  ...BACK_TO_SOURCE,
]);
/** The source's guest is kept, stopped, until the destination has said that its own guest runs; then it is destroyed. */
export const LEAVING_SOURCE = route([
  ["preparing", "prepare", "handing-over", "another", "another", "another"],
  ["handing-over", "hand-over", "starting", "another", "restoring", "restoring"],
  ["starting", "start-destination", "cleaning", "retracting", "starting", "another"],
  ...CLEANING,
  ...ARRIVAL,
  ...BACK_TO_SOURCE,
]);
/**
 * Like `LEAVING_SOURCE`, for a guest that moves with its memory. A source that falls silent at the end of the hand-over may have given everything away, so the destination's
 * guest is kept until the source has answered. An operator who forces the source down states that nothing runs there. Then the destination answers: it starts the guest if it has
 * received all of it, and cannot start it otherwise.
 *
 * For the same reason a move that is aborted during the hand-over is `recalling` first: the destination is left when the source has said that it goes on with its guest, or that it has
 * it and cannot. Is the source fenced instead, the abort has lost its aim, since the only guest that can run may be the destination's, which answers as above.
 */
export const LEAVING_SOURCE_LIVE = route([
  ["preparing", "prepare", "handing-over", "another", "another", "another"],
  ["handing-over", "hand-over", "starting", "another", "handing-over", "starting"],
  ["recalling", "start-source", "restoring", "restoring", "recalling", "starting"],
  ["starting", "start-destination", "cleaning", "retracting", "starting", "another"],
  ...CLEANING,
  ...ARRIVAL,
  ...BACK_TO_SOURCE,
]);
/**
 * A rebuild for which Cinder fills the server's boot volume with an image, while neither guest runs. `failed`: Cinder has changed nothing, so the server goes back to its former
 * guest. `gone`: nobody knows what the volume holds, or Cinder may still be writing to it. So from then on no guest is started unless the volume is filled, and a rebuild that
 * does not succeed leaves the server in ERROR, with its former guest, which stands still. A server that was in ERROR before is left so, too, instead of `restoring`: Cinder may not have
 * filled its volume for an earlier rebuild.
 */
export const REIMAGING = route([
  ["preparing", "prepare", "handing-over", "another", "another", "another"],
  ["handing-over", "hand-over", "reimaging", "another", "restoring", "restoring"],
  ["reimaging", "reimage-volume", "starting", "restoring", "forsaking", "reimaging"],
  ["starting", "start-destination", "cleaning", "retracting", "starting", "forsaking"],
  ...CLEANING,
  ["retracting", "destroy-destination", "forsaking", "retracting", "retracting", "forsaking"],
  ["forsaking", "nothing", "lost", "lost", "lost", "lost"],
  ...BACK_TO_SOURCE,
]);
/**
 * The source is fenced, so nothing is asked of it. The remains of the server there are kept until the destination has said that its guest
 * runs. A source that comes back after that destroys its old guest, so this route ends only with the destination's answer, not its silence.
 */
export const LEAVING_FENCED = route([
  ["preparing", "prepare", "starting", "another", "another", "another"],
  ["starting", "start-destination", "succeed", "retracting", "starting", "another"],
  ...ARRIVAL,
  ...BACK_TO_NOTHING,
]);
/**
 * There is no source, and no guest whose fate depends on how the operation ends: a destination that was told to start and is away may run, so
 * the server stays there.
 */
export const FROM_NOWHERE = route([
  ["preparing", "prepare", "starting", "another", "another", "another"],
  ["starting", "start-destination", "succeed", "retracting", "succeed", "another"],
  ...ARRIVAL,
  ...BACK_TO_NOTHING,
]);
export const POWER = route([["powering", "power", "succeed", "give-up", "give-up", "give-up"]]);

/** The guest is left as it is, whatever the answer. */
export const SNAPSHOTTING = route([["snapshotting", "snapshot", "succeed", "give-up", "give-up", "give-up"]]);

/**
 * A host that could not rescue the guest may have stopped it, or may have booted it all the same. So it is told to bring the guest back into its former
 * state. If the host is away instead, it does so when it is next compared.
 */
export const RESCUING = route([
  ["rescuing", "rescue", "succeed", "undoing", "give-up", "give-up"],
  ["undoing", "undo-rescue", "give-up", "lost", "give-up", "give-up"],
]);

/**
 * A server whose host is away is ACTIVE from then on, like the others there: when the host is next compared, a guest that is still rescued is told
 * to end its rescue, and one that does not run is started.
 */
export const UNRESCUING = route([["powering", "power", "succeed", "give-up", "succeed", "succeed"]]);

/**
 * The volume belongs to the server until its host says that the guest does not have it, so that no other server gets a volume that may be connected.
 * So the operation waits for a silent host. On a host that was fenced nothing runs, but the host's record of the guest may have the volume, so the
 * server keeps it.
 */
export const ATTACHING = route([
  ["attaching", "attach-volume", "succeed", "undoing", "attaching", "succeed"],
  ["undoing", "undo-attach", "give-up", "undoing", "undoing", "succeed"],
]);
export const DETACHING = route([["detaching", "detach-volume", "succeed", "give-up", "detaching", "give-up"]]);

/**
 * A server whose move waits for its confirmation has two guests: the one that it uses, and the one that the source keeps for a revert. A volume is connected to both, and disconnected from
 * both, so that the guest that is left when the move is confirmed or reverted has the volumes of its server, and no guest has one that is another server's by then. The guest that the server uses
 * comes first: it may refuse. As on one host, the server keeps a volume that one of the two may have.
 */
export const ATTACHING_TO_BOTH = route([
  ["attaching", "attach-volume", "attaching-kept", "undoing", "attaching", "attaching-kept"],
  ["attaching-kept", "attach-at-source", "succeed", "undoing-kept", "attaching-kept", "succeed"],
  ["undoing-kept", "undo-at-source", "undoing", "undoing-kept", "undoing-kept", "succeed"],
  ["undoing", "undo-attach", "give-up", "undoing", "undoing", "succeed"],
]);
export const DETACHING_FROM_BOTH = route([
  ["detaching", "detach-volume", "detaching-kept", "give-up", "detaching", "give-up"],
  ["detaching-kept", "detach-at-source", "succeed", "detaching-kept", "detaching-kept", "give-up"],
]);

/** The server is on no host, so the volume belongs to it as soon as this is written: the api has asked Cinder for it before, and the server's next host connects it. */
export const ATTACHING_OFFLOADED = route([["attaching", "nothing", "succeed", "give-up", "give-up", "give-up"]]);
/** No guest has the volume. Cinder is asked to let it go when this is written. */
export const DETACHING_OFFLOADED = route([["detaching", "nothing", "succeed", "give-up", "give-up", "give-up"]]);

/** The volume has grown whatever the answer is: a guest that does not hear of it sees the new size at its next boot. */
export const EXTENDING = route([["extending", "extend-volume", "succeed", "give-up", "give-up", "give-up"]]);

/**
 * Cinder drops the volume that the guest does not use, so it is told only what is certain. Until the guest is told to use the other volume it uses its own.
 * From then on the host may have changed over, and it may also have given the copying up, since an error of the other volume ends the copying and not the guest.
 * So if the host is fenced before it says which one the guest uses, nobody knows, and Cinder is told nothing. The volume has no attachments when Cinder is asked to exchange the
 * two (`exchanging`). So one that has some then was exchanged, which nothing else shows if Cinder migrates it again at once.
 */
export const REPLACING = route([
  ["mirroring", "mirror-volume", "pivoting", "unmirroring", "mirroring", "calling-off"],
  ["pivoting", "pivot-volume", "completing", "unpivoting", "pivoting", "lost"],
  ["completing", "leave-replaced", "exchanging", "completing", "completing", "completing"],
  ["exchanging", "complete-replacement", "succeed", "exchanging", "exchanging", "exchanging"],
  ["unmirroring", "keep-volume", "calling-off", "unmirroring", "unmirroring", "calling-off"],
  ["unpivoting", "keep-volume", "calling-off", "pivoting", "unpivoting", "lost"],
  ["calling-off", "abandon-replacement", "give-up", "calling-off", "calling-off", "calling-off"],
]);

/**
 * Like `REPLACING`, for a server whose move waits for its confirmation. The guest that the source keeps has no volume of the two while it is open which one the server uses: it loses its own one before
 * the server's guest changes over, and gets back the one that Cinder has under the volume's id in the end. So whatever breaks this off, a revert never starts a guest with a volume that Cinder has
 * dropped. The source that cannot connect the volume again holds nothing up, since a confirmation needs nothing of it.
 */
export const REPLACING_ON_BOTH = route([
  ["mirroring", "mirror-volume", "detaching-kept", "unmirroring", "mirroring", "calling-off"],
  ["detaching-kept", "detach-at-source", "pivoting", "unmirroring", "detaching-kept", "unmirroring"],
  ["pivoting", "pivot-volume", "completing", "unpivoting", "pivoting", "lost"],
  ["completing", "leave-replaced", "exchanging", "completing", "completing", "completing"],
  ["exchanging", "complete-replacement", "attaching-kept", "exchanging", "exchanging", "exchanging"],
  ["attaching-kept", "reconnect-at-source", "succeed", "give-up", "attaching-kept", "succeed"],
  ["unmirroring", "keep-volume", "calling-off", "unmirroring", "unmirroring", "calling-off"],
  ["unpivoting", "keep-volume", "calling-off", "pivoting", "unpivoting", "lost"],
  ["calling-off", "abandon-replacement", "returning-kept", "calling-off", "calling-off", "calling-off"],
  ["returning-kept", "reconnect-at-source", "give-up", "give-up", "returning-kept", "give-up"],
]);

/** The guest that the source of a move keeps gets a volume that it lacks, since the source or the other host was forced down while the server's volumes changed. */
export const RECONNECTING_KEPT = route([
  ["attaching-kept", "reconnect-at-source", "succeed", "give-up", "attaching-kept", "give-up"],
]);

/**
 * The host looks again which of two volumes its guest uses, or has used when it ran last. One that may still change over does so no longer, unless its record is decided
 * for the other volume. A host that cannot say it leaves the server as it is.
 */
export const SETTLING = route([
  ["unpivoting", "keep-volume", "calling-off", "pivoting", "unpivoting", "give-up"],
  ["pivoting", "pivot-volume", "completing", "give-up", "pivoting", "give-up"],
  ["completing", "leave-replaced", "exchanging", "completing", "completing", "completing"],
  ["exchanging", "complete-replacement", "succeed", "exchanging", "exchanging", "exchanging"],
  ["calling-off", "abandon-replacement", "succeed", "calling-off", "calling-off", "calling-off"],
]);
/** An operator has stated that the guest has used the server's own volume. If Cinder does not agree, nothing changes, and this can be repeated. */
export const STATING_OWN = route([
  ["calling-off", "abandon-replacement", "succeed", "give-up", "calling-off", "calling-off"],
]);
/** An operator has stated that the guest has used the other volume. If Cinder does not agree, nothing changes, and this can be repeated. */
export const STATING_OTHER = route([
  ["completing", "leave-replaced", "exchanging", "give-up", "completing", "completing"],
  ["exchanging", "complete-replacement", "succeed", "give-up", "exchanging", "exchanging"],
]);

/**
 * Cinder has made a file that refers to the one to which the guest writes, and waits until the guest writes to the new one. If the host is fenced before it has answered, the
 * new file is right in either case: whatever the guest has written is in it, or beneath it. So no later guest uses another one. If Cinder has given the snapshot up, it
 * names the former file to later guests, so the guest goes back to that. If this cannot be done either, because the host was fenced, no guest is started until the two agree.
 */
export const SWITCHING = route([
  ["switching", "switch-volume", "announcing", "returning", "switching", "announcing"],
  ["announcing", "announce-snapshot", "succeed", "returning", "announcing", "announcing"],
  ["returning", "return-volume", "denying", "returning", "returning", "lost"],
  ["denying", "deny-snapshot", "give-up", "give-up", "denying", "denying"],
]);
/** Cinder deletes a file when it hears that it is merged, so it hears that only after the host has said so. Otherwise it keeps all files. */
export const MERGING = route([
  ["merging", "merge-volume", "announcing", "denying", "merging", "denying"],
  ["announcing", "announce-snapshot", "succeed", "give-up", "announcing", "announcing"],
  ["denying", "deny-snapshot", "give-up", "give-up", "denying", "denying"],
]);

/** The source is destroyed only after the destination has said that it has the guest. */
export const CONFIRMING = route([
  ["verifying", "check-destination", "cleaning", "give-up", "give-up", "give-up"],
  ...CLEANING,
]);
/**
 * The destination is destroyed only after the source has said that it has the guest. A destination that was told to destroy its guest never
 * becomes the server's home again, whatever it answers, and also if it does not answer.
 */
export const REVERTING = route([
  ["verifying", "check-source", "retreating", "give-up", "give-up", "give-up"],
  ["retreating", "destroy-destination", "restoring", "retreating", "retreating", "restoring"],
  ["restoring", "start-source", "succeed", "lost", "succeed", "succeed"],
]);
/**
 * The guest is stopped, its disk is copied into an image, and then it is destroyed. If the host does not make the image, the stopped guest is kept: the
 * server is shelved on its host.
 */
export const IMAGING = route([
  ["powering", "power", "snapshotting", "give-up", "give-up", "give-up"],
  ["snapshotting", "snapshot", "offloading", "give-up", "give-up", "give-up"],
  ["offloading", "destroy-home", "succeed", "succeed-keeping", "succeed-keeping", "succeed"],
]);
/** The guest is stopped first, and then destroyed. */
export const OFFLOADING = route([
  ["powering", "power", "offloading", "give-up", "give-up", "give-up"],
  ["offloading", "destroy-home", "succeed", "succeed-keeping", "succeed-keeping", "succeed"],
]);
