import type { Cells } from "../../cells/hydrate-servers.ts";
import { unavailable } from "../../http/fault.ts";
import { instanceNameOf } from "../servers/instance-name.ts";
import type { KnownHost } from "./list-hosts.ts";

export interface HostServer {
  /** The name of the guest, which is not the server's own. */
  readonly name: string;
  readonly uuid: string;
}

/**
 * Reads the servers on each of the hosts: one question a cell, which is answered by an index. A 503 when a cell does not answer, since an
 * empty host may be switched off.
 */
export async function readHostServers(
  cells: Cells,
  hosts: readonly KnownHost[],
): Promise<ReadonlyMap<KnownHost, readonly HostServer[]>> {
  const byCell = Map.groupBy(hosts, ({ cell }) => cell);
  const answers = await Promise.all(
    Array.from(byCell, async ([name, ofCell]) => {
      const names = ofCell.map(({ host }) => host.name);
      const answer = await cells.get(name)?.operations((store) => store.residents(names));
      if (answer?.kind !== "answer") throw unavailable(`Cell ${name} does not answer.`);
      return ofCell.map((known, index) => [known, (answer.value[index] ?? []).map(viewOf)] as const);
    }),
  );
  return new Map(answers.flat());
}

function viewOf({ serverUuid }: { readonly serverUuid: string }): HostServer {
  return { name: instanceNameOf(serverUuid), uuid: serverUuid };
}
