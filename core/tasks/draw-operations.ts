import type { OperationDefinition } from "./operation-definition.ts";
import { OPERATION_KINDS, OPERATIONS, type OperationKind } from "./operation-kinds.ts";

const END_NAMES: Readonly<Record<string, string>> = {
  succeed: "[*]",
  "succeed-keeping": "room_kept",
  "give-up": "as_before",
  lost: "in_error",
};

/** The page of all operations: a state diagram (mermaid) for each route, with the kinds that use it. */
export function operationsPage(): string {
  const byRoute = new Map<string, OperationKind[]>();
  for (const kind of OPERATION_KINDS) {
    const drawing = drawRoute(OPERATIONS[kind]);
    const kinds = byRoute.get(drawing);
    if (kinds === undefined) byRoute.set(drawing, [kind]);
    else kinds.push(kind);
  }
  const parts = [...byRoute].map(([drawing, kinds]) => `## ${kinds.join(", ")}\n\n\`\`\`mermaid\n${drawing}\n\`\`\`\n`);
  return `${HEAD}\n${parts.join("\n")}`;
}

/** One route. An arrow is one transaction, labelled with the answer to the stage's question. */
function drawRoute({ route, confirmation }: OperationDefinition): string {
  const nameOf = (target: string): string => {
    // A server whose move waits for its confirmation goes on waiting.
    const name = target === "lost" && confirmation === "unchanged" ? "in_doubt" : END_NAMES[target];
    return name ?? target.replaceAll("-", "_");
  };
  const lines = ["stateDiagram-v2"];
  const first = [...route.keys()][0];
  lines.push(`  [*] --> ${nameOf(first ?? "succeed")}`);
  for (const [stage, { ask }] of route) lines.push(`  ${nameOf(stage)}: ${stage} (asks - ${ask})`);
  for (const [stage, { done, failed, gone, fenced }] of route) {
    const answersTo = new Map<string, string[]>();
    for (const [answer, target] of [
      ["done", done],
      ["failed", failed],
      ["host gone", gone],
      ["host fenced", fenced],
    ] as const) {
      for (const [to, why] of target === "another" ? ALTERNATES : [[target, ""]]) {
        const label = `${answer}${why}`;
        answersTo.set(String(to), [...(answersTo.get(String(to)) ?? []), label]);
      }
    }
    for (const [to, answers] of answersTo) lines.push(`  ${nameOf(stage)} --> ${nameOf(to)}: ${answers.join(", ")}`);
  }
  if (route.has("recalling")) lines.push("  handing_over --> recalling: aborted");
  return lines.join("\n");
}

/** The stages that follow a failed destination. */
const ALTERNATES = [
  ["preparing", ", next alternate"],
  ["restoring", ", none left"],
] as const;

const HEAD = `# The routes of operations

\`npm run diagrams\` generates this page from \`OPERATIONS\` of \`core/tasks/operation-kinds.ts\`. [Decision 0006](decisions/0006-moves.md) describes the
stages. A delete can cancel an operation at each stage. Aborting leads from \`preparing\` and \`handing-over\` to \`restoring\`, or, where a route has it, from \`handing-over\` to \`recalling\`.

The label of each stage contains its order to a host (\`asks\`). A host is *gone* when no conductor has seen its agent for a while, and
*fenced* when an operator has forced it down. An arrow from a stage to itself is a wait, which the note of the move shows. The ends are:
- the end point: the operation succeeded
- \`room_kept\`: it succeeded, and the allocation of a guest that may be left is kept until its host reports that the guest is gone
- \`as_before\`: the server is unchanged, and the reason is recorded
- \`in_error\`: the server runs nowhere, or nobody knows which of two volumes its guest uses
- \`in_doubt\`: nobody knows which of two volumes the guest uses, and the server's move waits for its confirmation as before
`;
