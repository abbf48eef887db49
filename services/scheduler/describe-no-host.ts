import { describeRefusal, sumRefusals } from "../../core/candidates/refusal.ts";
import type { HostChoice } from "../../core/scheduling/choose-hosts.ts";

/** Nova's words, and then what Nova leaves out: why. */
export function noValidHost(choice: HostChoice & { readonly kind: "none" }, unseen: readonly string[]): string {
  const reasons = sumRefusals(choice.refusals).map(({ refusal, trees }) => `${trees} ${describeRefusal(refusal)}`);
  if (unseen.length > 0) reasons.push(`no answer from cell ${unseen.join(", ")}`);
  const looked = choice.trees === 0 ? "There are no hosts" : `Of ${choice.trees} hosts`;
  return `No valid host was found. ${looked}${reasons.length > 0 ? `: ${reasons.join("; ")}` : ""}.`;
}
