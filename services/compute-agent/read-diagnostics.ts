import type { ConductorStream } from "../../core/agent/link.ts";
import type { ReadDiagnostics } from "../../proto/gen/berth/agent.ts";
import type { GuestDiagnostics } from "../../proto/gen/berth/shared.ts";
import type { Driver } from "./driver.ts";
import { messageOf } from "./message-of.ts";

/** Answers a conductor's question about what a guest uses. It changes nothing, and so needs no turn in the guest's chain of orders. Always answers. */
export async function readDiagnostics(
  { driver, hosts }: { readonly driver: Pick<Driver, "measure">; readonly hosts: ReadonlySet<string> },
  { host, serverUuid, attemptId, query }: ReadDiagnostics,
  from: ConductorStream,
): Promise<void> {
  const answer = (diagnostics: GuestDiagnostics | undefined, { absent = false, failed = "" } = {}) =>
    from.send({ body: { $case: "diagnostics", value: { host, query, diagnostics, absent, failed } } });
  try {
    if (hosts.has(host)) answer((await driver.measure({ host, serverUuid, attemptId })) ?? undefined);
    else answer(undefined, { absent: true });
  } catch (error) {
    answer(undefined, { failed: messageOf(error) });
  }
}
