import type { TaskRow } from "../adapters/memory/cell/cell-state.ts";
import { factsOf } from "../core/tasks/operation-facts.ts";

/** A server's latest rebuild by which its boot volume was to be filled. */
export interface RebuiltServer {
  readonly serverUuid: string;
  readonly imageRef: string;
  readonly hasSucceeded: boolean;
}

/** Finds the latest such rebuild of each server in the tasks of a cell. */
export function rebuiltServers(tasks: readonly Readonly<TaskRow>[]): readonly RebuiltServer[] {
  const latest = new Map<string, RebuiltServer>();
  for (const { serverUuid, task, outcome } of tasks.toSorted((a, b) => a.createdAtMs - b.createdAtMs)) {
    const facts = task.work?.$case === "operate" ? factsOf(task) : null;
    if (facts?.kind !== "reimage" || facts.volume === null) continue;
    const { imageRef } = facts.volume;
    latest.set(serverUuid, { serverUuid, imageRef, hasSucceeded: outcome === "success" });
  }
  return [...latest.values()];
}

/**
 * The moves that were cancelled in time and reached their destination all the same. That is right only if an operator has forced the source down before it has said whether it has
 * handed over.
 */
export function calledOffInVain(tasks: readonly Readonly<TaskRow>[], toldDown: ReadonlySet<string>): readonly string[] {
  const inVain = tasks.filter(({ signal, outcome, stages, task }) => {
    if (signal !== "abort" || outcome !== "success") return false;
    const isSilent = stages.some(({ stage }) => stage === "recalling");
    return !(isSilent && toldDown.has(factsOf(task).source?.host ?? ""));
  });
  return inVain.map(({ id }) => id);
}

/** The moves that ended in ERROR where they were, instead of on their way back, so that no guest of them was destroyed. */
export function strandedMoves(tasks: readonly Readonly<TaskRow>[]): readonly string[] {
  const stranded = tasks.filter(
    ({ outcome, task, stages }) =>
      outcome === "error" &&
      task.work?.$case === "operate" &&
      factsOf(task).isMove &&
      ["handing-over", "recalling", "starting"].includes(stages.at(-1)?.stage ?? ""),
  );
  return stranded.map(({ id }) => id);
}
