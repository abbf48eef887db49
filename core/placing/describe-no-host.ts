import { describeSearchRefusal, sumRefusals } from "../candidates/refusal.ts";
import type { HostChoice } from "../scheduling/host-chooser.ts";

/** Maximum number of reasons that a fault names, so that it can be read at a glance. */
const REASONS_MAX = 6;

interface Besides {
  /** Cells that did not answer. */
  readonly unseen: readonly string[];
  /** Cells that do not take the server, because it was deleted there. */
  readonly closed: readonly string[];
  /** The uuid of the server under which the kept decision can be read, or null when no decision is kept. */
  readonly keptFor: string | null;
}

/** Returns Nova's "No valid host" message, followed by the reasons with their counts, the most frequent first. */
export function noValidHost(
  choice: HostChoice & { readonly kind: "none" },
  { unseen, closed, keptFor }: Besides,
): string {
  const refusals = sumRefusals(choice.refusals);
  const named = refusals.length > REASONS_MAX ? refusals.slice(0, REASONS_MAX - 1) : refusals;
  const reasons = named.map(({ refusal, trees }) => `${trees} ${describeSearchRefusal(refusal)}`);
  const others = refusals.slice(named.length).reduce((sum, { trees }) => sum + trees, 0);
  if (others > 0) reasons.push(`${others} for other reasons`);
  if (unseen.length > 0) reasons.push(`no answer from cell ${unseen.join(", ")}`);
  if (closed.length > 0) reasons.push(`closed to this server: cell ${closed.join(", ")}`);
  const looked = choice.trees === 0 ? "There are no hosts" : `Of ${choice.trees} hosts`;
  const more = keptFor === null ? "" : ` See: berth explain ${keptFor}`;
  return `No valid host was found. ${looked}${reasons.length > 0 ? `: ${reasons.join("; ")}` : ""}.${more}`;
}
