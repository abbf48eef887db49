import type { Clock } from "../../runtime/clock.ts";
import type { FakeScript } from "./fake-script.ts";
import type { FakeShare } from "./fake-volume-files.ts";
import type { MetalNodes } from "./metal-nodes.ts";

export interface FakeDriverOptions {
  readonly clock: Clock;
  /** Decides which builds get the scripted outcome when a script has a `probability`. */
  readonly seed: number;
  /** The scripts of hosts that have one, by host. */
  readonly scripts: ReadonlyMap<string, FakeScript>;
  /** Whether servers' metadata, which their owners write, may also contain a script. */
  readonly byMetadata: boolean;
  /** Ends the agent's process immediately. */
  readonly crash: () => void;
  /** Drops all connections to conductors. */
  readonly loseConnections: () => void;
  /** The hosts that are bare metal nodes. None if absent. */
  readonly nodes?: MetalNodes;
  /** Where the files of Cinder's volumes lie. */
  readonly share?: FakeShare | undefined;
}
