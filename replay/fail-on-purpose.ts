import { FAKE_METADATA_KEY } from "../services/compute-agent/fake-script.ts";
import { randomOf } from "./generate-trace.ts";
import type { TraceTask } from "./trace.ts";

const FAILING_SCRIPT = { outcome: "reschedule", first: 1, reason: "failed on purpose" };

/**
 * Metadata by which the fake driver fails the first build of a share of the tasks, so that they have to go to an alternate. The second host
 * builds them. The seed and the order of the trace decide which tasks these are.
 */
export function failOnPurpose(
  tasks: readonly TraceTask[],
  options: { readonly share: number; readonly seed: number },
): (task: TraceTask) => Readonly<Record<string, string>> {
  const random = randomOf(options.seed);
  const failing = new Set(tasks.filter(() => random() < options.share));
  const script = { [FAKE_METADATA_KEY]: JSON.stringify(FAILING_SCRIPT) };
  const none = {};
  return (task) => (failing.has(task) ? script : none);
}
