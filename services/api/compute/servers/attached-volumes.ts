import type { VolumeStore } from "../../../../core/stores/api/volume-store.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";

/** The volumes of each server that has any, by the server's uuid, in the order in which they were attached. */
export type AttachedVolumes = ReadonlyMap<
  string,
  readonly { readonly id: string; readonly delete_on_termination: boolean }[]
>;

/** Reads the volumes of servers with one query. They are shown also while they are attaching or detaching, as in Nova. */
export async function readAttachedVolumes(
  volumes: Pick<VolumeStore, "volumesOfServers"> | null,
  servers: readonly KnownServer[],
): Promise<AttachedVolumes> {
  if (volumes === null || servers.length === 0) return new Map();
  const found = await volumes.volumesOfServers(servers.map(({ server }) => server.uuid));
  const byServer = Map.groupBy(found, ({ attachment }) => attachment?.serverUuid ?? "");
  return new Map(
    Array.from(byServer, ([uuid, volumesOfOne]) => [
      uuid,
      volumesOfOne.map(({ id, attachment }) => ({
        id,
        delete_on_termination: attachment?.deleteOnTermination ?? false,
      })),
    ]),
  );
}
