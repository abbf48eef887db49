import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Static } from "typebox";
import { firstFault } from "../../runtime/first-fault.ts";
import { PlainType } from "../../runtime/plain-type.ts";
import { SettingsError } from "../../runtime/settings.ts";
import { syncDirectory } from "./sync-directory.ts";

/** What a bare metal node has gone through. */
const NodeState = PlainType.Object({
  /** The guests of the server that has the node. A server that is rebuilt there has two. */
  users: PlainType.Array(PlainType.Object({ serverUuid: PlainType.String(), attemptId: PlainType.String() })),
  isCleaning: PlainType.Boolean(),
  /** Why its last cleaning failed. Empty if it did not. */
  failure: PlainType.String(),
  /** Whether the node has had a maintenance of the hosts file since then. */
  sawMaintenance: PlainType.Boolean(),
  /** How often its cleaning has ended. */
  cleanings: PlainType.Integer(),
});
export type NodeState = Static<typeof NodeState>;
const Nodes = PlainType.Record(PlainType.String(), NodeState);
type NodeStates = Static<typeof Nodes>;

/** Where the states of nodes are kept. */
export interface NodeStore {
  load(): NodeStates;
  /** The states are durable when this returns. Throws when they cannot be written. */
  save(nodes: NodeStates): void;
}

/** A store in a file. Its `load` throws a SettingsError if the file cannot be understood. */
export function fileNodeStore(path: string): NodeStore {
  return {
    load() {
      let text: string;
      try {
        text = readFileSync(path, "utf8");
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === "ENOENT") return {};
        throw new SettingsError(`the file of the bare metal nodes ${path} cannot be read: ${(error as Error).message}`);
      }
      return parsed(text, path);
    },
    save(nodes) {
      writeFileSync(`${path}.new`, JSON.stringify(nodes), { mode: 0o600, flush: true });
      renameSync(`${path}.new`, path);
      syncDirectory(dirname(path));
    },
  };
}

function parsed(text: string, path: string): NodeStates {
  let nodes: unknown;
  try {
    nodes = JSON.parse(text);
  } catch {
    nodes = null;
  }
  const fault = firstFault(Nodes, nodes);
  if (fault !== null)
    throw new SettingsError(
      `the file of the bare metal nodes ${path} is damaged (${fault}): move it away, after you have put the nodes that were not cleaned into maintenance in the hosts file`,
    );
  return nodes as NodeStates;
}
