import type { LxdClient } from "../../../adapters/lxd/lxd-client.ts";
import { LxdError } from "../../../adapters/lxd/lxd-error.ts";
import type { HandOffOrder } from "../driver.ts";
import { parseContainerAddress } from "./container-address.ts";
import { containerName, OWN_KEYS } from "./container-of-server.ts";
import { LxdContainer } from "./lxd-container.ts";
import { sendDisk } from "./send-disk.ts";

/**
 * Stops the guest and, if the destination waits for its disk, copies the disk: within LXD if both containers are in the same one, and otherwise
 * to the agent of the destination. The destination cannot be started before it has the whole disk.
 */
export async function handOverContainer(
  container: LxdContainer,
  { toHost, toAttemptId, listensAt, orderId }: HandOffOrder,
  control: {
    readonly client: LxdClient;
    readonly socketPath: string;
    readonly shutdownMs: number;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { client, socketPath, shutdownMs, signal } = control;
  const { config } = await container.existing();
  if (config[OWN_KEYS.handedTo] === toAttemptId) return;
  const to = addressOf(listensAt);
  const name = containerName({ host: toHost, attemptId: toAttemptId });
  await container.stop({ shutdownMs, signal });
  if (to !== null && to.lxd === (await lxdFingerprint(client)))
    await new LxdContainer(client, name).receiveDisk(container.name, orderId, signal);
  else if (to !== null)
    await sendDisk({ client, socketPath, container, to: { ...to, container: name }, orderId, signal });
  await container.change({ [OWN_KEYS.handedTo]: toAttemptId });
}

/** Names an LXD. */
export async function lxdFingerprint(client: LxdClient): Promise<string> {
  const { environment } = (await client.call("/1.0")) as {
    readonly environment: { readonly certificate_fingerprint: string };
  };
  return environment.certificate_fingerprint;
}

function addressOf(listensAt: string): ReturnType<typeof parseContainerAddress> {
  try {
    return parseContainerAddress(listensAt);
  } catch (error) {
    throw new LxdError("refused", (error as Error).message, { cause: error });
  }
}
