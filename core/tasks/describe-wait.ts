import { withoutTrailing } from "../without-trailing.ts";
import { destinationOf, type OperationFacts } from "./operation-facts.ts";
import { OPERATIONS } from "./operation-kinds.ts";
import type { Stage } from "./operation-routes.ts";
import { edgesOf } from "./operation-stages.ts";

/** The thing that an operation waits for, the reason, and the remedy. Shown with the move and as the server's fault. */
export function describeWait(
  facts: OperationFacts,
  at: { readonly stage: Stage; readonly selection: number; readonly isRecalled: boolean },
  answer: { readonly kind: "failed" | "gone" | "host-fenced"; readonly reason: string },
): string {
  const { stage, selection } = at;
  const place = KEPT_STAGES.includes(stage) ? facts.source : (destinationOf(facts, selection) ?? facts.source);
  const host = place?.host ?? "the host";
  if (stage === "handing-over" || stage === "recalling") return describeHandOver(facts, host, at);
  const asked = ASKED_OF_CINDER[stage];
  if (asked !== undefined) return `Waiting: Cinder was asked to ${asked}, but has not: ${answer.reason}.`;
  const told = TOLD[stage] ?? "destroy its guest of the server";
  const state =
    answer.kind === "failed"
      ? `${host} was ordered to ${told}, but cannot: ${answer.reason}`
      : `${host} was ordered to ${told}, but is silent`;
  const { kept, way } = prospectsOf(facts);
  return `Waiting: ${state}.${kept} If ${host} cannot come back, fence it and force it down: then ${way}.`;
}

/** The wait for a source that may have handed over a guest that runs, or not, and may have gone on after an abort. */
function describeHandOver(
  { source }: OperationFacts,
  destination: string,
  { stage, isRecalled }: { readonly stage: Stage; readonly isRecalled: boolean },
): string {
  const host = source?.host ?? "the host";
  const isAborted = stage === "recalling";
  if (isRecalled)
    return (
      `Waiting: ${host} was told to go on with the server after its move to ${destination} was aborted, but is silent, and may have done so. Both guests are kept. Bring ${host} back: then the ` +
      `server goes on there. If it cannot come back, fence it and force it down: then neither guest is started, since the one on ${destination} may be older than the server's disks, and the ` +
      "server's fault says what to do."
    );
  const since = isAborted ? " before the move was aborted" : "";
  const back = isAborted ? "the server goes on there" : "it says whether it still has the server";
  return (
    `Waiting: ${host} was ordered to hand the server over to ${destination}${since}, but is silent, and may have done so. Both guests are kept. Bring ${host} back: then ${back}. ` +
    `If it cannot come back, fence it and force it down: then ${destination} starts the server if it has received all of it, and otherwise the server is ` +
    `on ${host} again and can be evacuated.`
  );
}

/** The stages that ask about the guest that the source of a move keeps until the move is confirmed or reverted. */
const KEPT_STAGES: readonly Stage[] = ["attaching-kept", "detaching-kept", "undoing-kept", "returning-kept"];
const TOLD: Partial<Record<Stage, string>> = {
  starting: "start the server",
  attaching: "attach a volume",
  detaching: "detach a volume",
  undoing: "detach a volume that could not be attached",
  "attaching-kept": "attach a volume to the guest that it keeps for a revert",
  "detaching-kept": "detach a volume from the guest that it keeps for a revert",
  "undoing-kept": "detach a volume that could not be attached from the guest that it keeps for a revert",
  "returning-kept": "attach a volume again to the guest that it keeps for a revert",
  mirroring: "copy a volume to the one that replaces it",
  pivoting: "use the other volume",
  unmirroring: "stop copying a volume that could not be replaced",
  unpivoting: "stop copying a volume that could not be replaced",
  switching: "let the guest write to the new file of a snapshot",
  returning: "let the guest write to its former file, since the snapshot was given up",
  merging: "merge the files of a snapshot that is deleted",
};
const ASKED_OF_CINDER: Partial<Record<Stage, string>> = {
  reimaging: "fill the server's boot volume with the image",
  completing: "end the attachments of the volume that the guest no longer uses",
  exchanging: "let the other volume take the place of the server's volume",
  "calling-off": "end the replacement of the server's volume",
  announcing: "go on with the snapshot, in which the host has done its part",
  denying: "give the snapshot up, in which the host has not done its part",
};

/** Why an operation does not succeed, after this answer: the first reason counts. Empty while it goes forward. */
export function reasonAfter(
  facts: OperationFacts,
  { stage, reason }: { readonly stage: Stage; readonly reason: string },
  answer: { readonly kind: string; readonly reason?: string },
): string {
  if (answer.kind === "done" || answer.reason === undefined) return reason;
  if (answer.kind === "failed" && edgesOf(facts.kind, stage)?.ask === "reconnect-at-source")
    return describeLacking(facts, reason, answer.reason);
  return reason === "" ? answer.reason : reason;
}

/** Why the source's guest lacks a volume after a replacement, at whose end the source could not connect it again; and the remedy. `before` is why the replacement was called off, or "". */
function describeLacking({ kind, source }: OperationFacts, before: string, failed: string): string {
  const host = source?.host ?? "the source";
  const cannot = `${host} cannot connect the volume to the guest that it keeps for a revert: ${withoutTrailing(failed, ".")}`;
  const done = kind === "swap-volume-unconfirmed" && before === "" ? "The volume was replaced, but " : "";
  const start = before === "" ? done : `${withoutTrailing(before, ".")}. Besides, `;
  return (
    `${start}${cannot}. Confirm the move, which needs nothing of that guest. A revert is refused until it has the volume. Have it connected when the cause is removed: an administrator can do that ` +
    "(berth volume settle), and so can you by detaching and attaching the volume, unless the server boots from it."
  );
}

/** Why a move is not reverted: the guest that the source keeps for that lacks these volumes; and the remedy. */
export function describeKeptWithout(host: string, volumeIds: readonly string[]): string {
  const volumes = volumeIds.length === 1 ? `volume ${volumeIds[0]}` : `the volumes ${volumeIds.join(", ")}`;
  return (
    `The guest that ${host} keeps for a revert lacks ${volumes} of the server, and a revert would start it without. Confirm the move, or have the guest connected: an administrator can do that ` +
    "(berth volume settle), and so can you by detaching and attaching the volume, unless the server boots from it. Then revert again."
  );
}

/** The resources that are kept meanwhile, and the consequence of forcing the host down. */
function prospectsOf({ kind, isMove, source, volume }: OperationFacts): {
  readonly kept: string;
  readonly way: string;
} {
  if (volume !== null && !isMove)
    return { kept: " The volume stays with the server.", way: "the operation ends, and the server keeps the volume" };
  if (source === null) return { kept: "", way: "the next host is tried" };
  if (OPERATIONS[kind].source === "fenced")
    return {
      kept: ` What is left of it on ${source.host} is kept.`,
      way: `the next host is tried, and if there is none the server is on ${source.host} again and can be evacuated again`,
    };
  return {
    kept: ` The guest on ${source.host} is kept, and does not run meanwhile.`,
    way: "the server continues without it",
  };
}

/** The end of an operation whose cell's database has lost commits about its server, and the remedy. */
export function describeForgotten(
  facts: OperationFacts,
  guest: { readonly host: string; readonly obeyed: number; readonly given?: number; readonly known: number },
): string {
  const { host, obeyed, given = 0, known } = guest;
  const only = `but the database only knows orders up to ${known}`;
  const proof =
    obeyed > known
      ? `the guest on ${host} has obeyed order ${obeyed} of this server, ${only}`
      : given > known
        ? `the guest on ${host} was given order ${given} of this server, ${only}`
        : `the guest on ${host} has run, but the database does not know that it was started`;
  return (
    `The cell's database has lost commits: ${proof}. The ${facts.kind} ended, because it is unknown where the server belongs. None of its guests was ` +
    "destroyed. Look for its guests on the hosts, and with `berth cell quarantine`; save their data. Deleting the server removes them." +
    (OPERATIONS[facts.kind].confirmation === "unchanged"
      ? " If the guests on both hosts are what they should be, set the server to active (os-resetState): then its move waits for its confirmation again, and can be confirmed or reverted."
      : "")
  );
}

/** The end of a move whose source has lost its guest, while the destination's guest may not be whole, and the remedy. */
export function describeStranded(facts: OperationFacts, selection: number, failed: string): string {
  const source = facts.source?.host ?? "the source";
  const host = destinationOf(facts, selection)?.host ?? "the destination";
  return (
    `${source} no longer has the guest of this server, and the one on ${host} does not go on: ${withoutTrailing(failed, ".")}. The ${facts.kind} ended, and the guest on ${host} is kept, since it may ` +
    "be the last copy. Save the data of its disks there. Deleting the server removes it."
  );
}

/**
 * What is known of the guest at the source of a move whose destination is kept. `elsewhere`: its agent is connected to another conductor, and not to the one that has the task. `absent`: the
 * source has none. `empty`: the same, and the destination cannot be asked.
 */
export type SourceWord = "silent" | "elsewhere" | "absent" | "empty";

/** Says why the destination of a move is neither started nor destroyed: it cannot start or be asked (`failed`), and may have the last copy of the server. */
export function describeKept(
  facts: OperationFacts,
  selection: number,
  { failed, word }: { readonly failed: string; readonly word: SourceWord },
): string {
  const source = facts.source?.host ?? "the source";
  const host = destinationOf(facts, selection)?.host ?? "the destination";
  if (word === "empty")
    return (
      `Waiting: ${source} no longer has the guest of this server, and ${failed}, which was to take it over. Its guest is kept, since it may be the last copy. Bring ${host} back: then the server ` +
      `goes on there if it has received all of it. If it cannot come back, stop the agent of ${source}, fence both hosts and force both down: then the server is on ${source} again and can be evacuated. ` +
      "Deleting the server removes both guests."
    );
  const [state, back] = SOURCE_WORDS[word](source);
  return (
    `Waiting: ${host} was ordered to start the server, but cannot: ${withoutTrailing(failed, ".")}. ${state}, so the guest on ${host} is kept, since it may be the last copy, and is started as soon as ` +
    `${host} can. Remove the cause. ${back}The move cannot be aborted any longer. If neither helps, save the data of the disks on ${host}, stop its agent, fence ${host} and force it down: ` +
    `then its guest is given up, and the move goes to its next host or back to ${source}, and the server can be evacuated after that. Deleting the server removes both guests.`
  );
}

/** For each word about the source: what is known, and what else helps. */
const SOURCE_WORDS: Readonly<
  Record<Exclude<SourceWord, "empty">, (source: string) => readonly [state: string, back: string]>
> = {
  silent: (source) => [
    `${source} is silent`,
    `Or bring ${source} back: if it still has the server's guest, the server goes on there. `,
  ],
  elsewhere: (source) => [
    `${source} is up, but its agent is not connected to the conductor that carries the move out, and cannot be asked`,
    `Or let the agent of ${source} reach all conductors of the cell: if ${source} still has the server's guest, the server goes on there. `,
  ],
  absent: (source) => [`${source} no longer has the guest of this server`, ""],
};

/** Says why the destination of an aborted move is neither started nor destroyed: its source may have gone on before it lost its guest or was forced down (`since`). */
export function describeOutdated(facts: OperationFacts, selection: number, since: string): string {
  const source = facts.source?.host ?? "the source";
  const host = destinationOf(facts, selection)?.host ?? "the destination";
  return (
    `${source} was told to go on with this server after its move was aborted, and ${since}. If it has gone on, the guest on ${host} is older than the server's disks, ` +
    `so it is not started. It is kept, since it may be the last copy. Save the data of the disks on ${source} or on ${host}. Deleting the server removes both guests.`
  );
}

/** Says why the destination of a move is not started, and that it will be. */
export function describeRefusedStart(why: string): string {
  return `The server has been moved and is not started: ${why}. This is tried again until it succeeds.`;
}

/** Why a server cannot go back to its source, although it should always fit there and be allowed to run there again. */
export function describeRefusedReturn(facts: OperationFacts, why: string): string {
  const where = facts.source === null ? "where it was" : `on ${facts.source.host}`;
  return (
    `The ${facts.kind} cannot bring the server back ${where}: ${why}. This is tried again until it succeeds: if room is missing, free it. The server can ` +
    "also be deleted."
  );
}

/** Why an operation does not give an order after which a guest of the server may run. */
export function describeHeldUp(facts: OperationFacts, why: string): string {
  return `The ${facts.kind} of the server waits: ${why}. It goes on by itself after that. The server can also be deleted.`;
}
