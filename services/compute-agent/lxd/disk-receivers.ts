import { randomBytes } from "node:crypto";
import type { LxdClient } from "../../../adapters/lxd/lxd-client.ts";
import { OWN_KEYS } from "./container-of-server.ts";
import { DiskReceiver } from "./disk-receiver.ts";
import { type FoundContainer, LxdContainer } from "./lxd-container.ts";

const KEY_BYTES = 32;
const RECORD = /^(\d{1,5}) ([0-9a-f]{64})$/;

/** The port and the key with which a container waits for the disk of another one, or null if it does not. */
export function readListening(
  config: FoundContainer["config"],
): { readonly port: number; readonly key: string } | null {
  const [, port, key = ""] = RECORD.exec(config[OWN_KEYS.listens] ?? "") ?? [];
  return port === undefined ? null : { port: Number(port), key };
}

/** The containers of this agent that wait for the disk of another one, by their names. */
export class DiskReceivers {
  readonly #client: LxdClient;
  readonly #options: { readonly socketPath: string; readonly host: string };
  readonly #open = new Map<string, DiskReceiver>();

  /** `host` is the address of this machine at which the agents of other machines reach it. */
  constructor(client: LxdClient, options: { readonly socketPath: string; readonly host: string }) {
    this.#client = client;
    this.#options = options;
  }

  /** Begins to wait, at a free port and with a new key. `record` belongs into the container's configuration. */
  async open(name: string): Promise<{ readonly port: number; readonly key: string; readonly record: string }> {
    const key = randomBytes(KEY_BYTES).toString("hex");
    const port = await this.#listen(name, { port: 0, key });
    return { port, key, record: `${port} ${key}` };
  }

  /**
   * Waits again as the agent's last process did, if the container still needs it. Rejects when another process has taken the port; then the
   * hand-over to this container will fail.
   */
  async reopen({ name, config }: FoundContainer): Promise<void> {
    const at = readListening(config);
    if (at !== null && !this.#open.has(name)) await this.#listen(name, at);
  }

  /** Waits no longer, and resolves when LXD writes nothing more. */
  async end(name: string): Promise<void> {
    const receiver = this.#open.get(name);
    this.#open.delete(name);
    await receiver?.close();
  }

  /** Ends all transfers, for the agent's next process. */
  close(): void {
    for (const receiver of this.#open.values()) void receiver.close();
    this.#open.clear();
  }

  async #listen(name: string, { port, key }: { readonly port: number; readonly key: string }): Promise<number> {
    const { socketPath, host } = this.#options;
    const container = new LxdContainer(this.#client, name);
    const receiver = new DiskReceiver({ client: this.#client, socketPath, container, key });
    const taken = await receiver.listen({ host, port });
    this.#open.set(name, receiver);
    return taken;
  }
}
