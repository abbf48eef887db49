import type { ConductorStream } from "../../core/agent/link.ts";
import type { GuestPinning } from "../../core/pinning/guest-pinning.ts";
import type { ReadPinning } from "../../proto/gen/berth/agent.ts";
import type { HostPinning } from "../../proto/gen/berth/shared.ts";
import type { Driver } from "./driver.ts";
import { messageOf } from "./message-of.ts";

/** Answers a conductor's question about the CPUs of a guest. It changes nothing, and so needs no turn in the guest's chain of orders. Always answers. */
export function readPinning(
  { driver, hosts }: { readonly driver: Pick<Driver, "pinningOf">; readonly hosts: ReadonlySet<string> },
  { host, serverUuid, attemptId, query }: ReadPinning,
  from: ConductorStream,
): void {
  const answer = (told: { readonly pinning?: HostPinning; readonly absent?: boolean; readonly failed?: string }) => {
    const { pinning = undefined, absent = false, failed = "" } = told;
    from.send({ body: { $case: "pinning", value: { host, query, pinning, absent, failed } } });
  };
  try {
    if (!hosts.has(host)) {
      answer({ absent: true });
      return;
    }
    const pinning = driver.pinningOf({ host, serverUuid, attemptId });
    answer({ pinning: pinning === null ? NOTHING : told(pinning) });
  } catch (error) {
    answer({ failed: messageOf(error) });
  }
}

const NOTHING: HostPinning = { cpus: {}, nodes: [], pageKib: 0 };

function told({ vcpus, held, memory, pageKib }: GuestPinning): HostPinning {
  const own = vcpus.flatMap(([cpu, ...others], vcpu) =>
    cpu !== undefined && others.length === 0 && held.includes(cpu) ? [[vcpu, cpu]] : [],
  );
  return {
    cpus: Object.fromEntries(own),
    nodes: memory.map(({ hostNode }) => hostNode ?? -1),
    pageKib: pageKib ?? 0,
  };
}
