import type { LxdClient } from "./lxd-client.ts";
import { LxdError } from "./lxd-error.ts";

/** The name of the snapshot from which an image of a container is made. A container has at most one, while it is being copied. */
const SNAPSHOT = "berth-image";

/**
 * Writes a container's disk, as it is at one moment, into a unified tarball that LXD imports as an image. The container goes on as it was. LXD makes
 * images of snapshots alone, so one is made and removed again, as is LXD's own image. What an earlier process has left of either is removed first; it is
 * known by its name, which is the image's id. After a raised signal nothing is left in LXD.
 */
export async function copyContainer(client: LxdClient, { container, imageId, file, signal }: CopyOrder): Promise<void> {
  await removeTraces(client, container, imageId);
  const snapshots = `/1.0/instances/${container}/snapshots`;
  try {
    await client.run(snapshots, { method: "POST", body: { name: SNAPSHOT, stateful: false }, signal });
    const { metadata } = await client.run("/1.0/images", { method: "POST", body: imageOf(container, imageId), signal });
    const { fingerprint } = metadata as { readonly fingerprint: string };
    await client.download(`/1.0/images/${fingerprint}/export`, file, signal);
  } finally {
    await removeTraces(client, container, imageId);
  }
}

export interface CopyOrder {
  readonly container: string;
  readonly imageId: string;
  /** The path of the tarball. */
  readonly file: string;
  readonly signal: AbortSignal;
}

/** The alias is LXD's name for its own image until that has been written into the file. */
function imageOf(container: string, imageId: string): object {
  return {
    source: { type: "snapshot", name: `${container}/${SNAPSHOT}` },
    aliases: [{ name: imageId }],
    compression_algorithm: "gzip",
    public: false,
  };
}

async function removeTraces(client: LxdClient, container: string, imageId: string): Promise<void> {
  const alias = (await unlessMissing(client.call(`/1.0/images/aliases/${imageId}`))) as
    | { readonly target: string }
    | undefined;
  if (alias !== undefined) await unlessMissing(client.run(`/1.0/images/${alias.target}`, { method: "DELETE" }));
  await unlessMissing(client.run(`/1.0/instances/${container}/snapshots/${SNAPSHOT}`, { method: "DELETE" }));
}

/** Undefined when LXD has no such object. */
async function unlessMissing<Value>(asked: Promise<Value>): Promise<Value | undefined> {
  try {
    return await asked;
  } catch (error) {
    if (error instanceof LxdError && error.code === "not-found") return undefined;
    throw error;
  }
}
