import { destinationOf, type OperationFacts } from "./operation-facts.ts";
import type { Stage } from "./operation-routes.ts";

/** What an operation waits for, why, and what a person can do about it: shown with the move and as the server's fault. */
export function describeWait(
  facts: OperationFacts,
  { stage, selection }: { readonly stage: Stage; readonly selection: number },
  answer: { readonly kind: "failed" | "gone" | "host-fenced"; readonly reason: string },
): string {
  const host = destinationOf(facts, selection)?.host ?? "the host";
  const told = stage === "starting" ? "start the server" : "destroy its guest of the server";
  const state =
    answer.kind === "failed"
      ? `${host} was told to ${told} and cannot: ${answer.reason}`
      : `${host} was told to ${told} and is away`;
  const { kept, way } = prospectsOf(facts);
  return `Waiting: ${state}.${kept} If ${host} cannot come back, fence it and force it down: then ${way}.`;
}

/** What is kept meanwhile, and what follows when the host is forced down. */
function prospectsOf({ kind, source }: OperationFacts): { readonly kept: string; readonly way: string } {
  if (source === null) return { kept: "", way: "the next host is tried" };
  if (kind === "evacuate")
    return {
      kept: ` What is left of it on ${source.host} is kept.`,
      way: `the next host is tried, and if there is none the server is on ${source.host} again and can be evacuated again`,
    };
  return {
    kept: ` The guest on ${source.host} is kept, and does not run meanwhile.`,
    way: "the server goes on without it",
  };
}

/** Why a server cannot go back to where it was, though it always should fit there. */
export function describeRefusedReturn(facts: OperationFacts, why: string): string {
  const where = facts.source === null ? "where it was" : `on ${facts.source.host}`;
  return `The cell's database refuses what the server needs ${where}: ${why}. It is tried again until it fits: free the room, or delete the server.`;
}
