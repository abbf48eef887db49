import { CINDER, CinderClient } from "../../adapters/openstack/cinder-client.ts";
import { PostgresApiStore } from "../../adapters/postgres/api/postgres-api-store.ts";
import { PostgresImageStore } from "../../adapters/postgres/api/postgres-image-store.ts";
import { createPool } from "../../adapters/postgres/client/pool.ts";
import { OWN_NAME } from "../../core/stores/networking.ts";
import { systemClock } from "../../runtime/clock.ts";
import type { ActionTarget } from "../../services/api/compute/server-actions/action-target.ts";
import { acceptVolumeImage } from "../../services/api/compute/server-actions/volume-images.ts";
import type { FoundRecord } from "../../services/api/compute/server-volumes/server-volumes.ts";
import type { KnownCall } from "../../services/api/http/call.ts";
import { ImageCatalog } from "../../services/api/image/image-catalog.ts";
import { OwnImages } from "../../services/api/image/own-images.ts";
import { withServiceLogin } from "./with-service-login.ts";

// A program that makes an image of a server's volumes as an api does, and ends. A test kills it in the middle.
const [databaseUrl = "", cinderUrl = "", serverUuid = "", requestId = "", ...volumeIds] = process.argv.slice(2);
const pool = createPool({ url: databaseUrl, applicationName: "make volume image" });
const client = withServiceLogin({ ...CINDER, url: cinderUrl, timeoutMs: 300_000, triesMax: 1 });
const storage = new CinderClient(client);
const store = new PostgresImageStore(pool);
const requests = new PostgresApiStore(pool);
const clock = systemClock;
const images = new OwnImages({ store, catalog: new ImageCatalog({ store, clock }, { cacheMs: 0 }), clock });
const find = async () => {
  const found = await Promise.all(volumeIds.map((id) => storage.volume(id, OWN_NAME)));
  return found.flatMap((one) => (one === null ? [] : { ...one, attachment: null })) as unknown as FoundRecord[];
};
const volumes = volumeIds.map((volumeId, at) => ({
  ...{ volumeId, device: `/dev/vd${"abc"[at]}`, isRoot: at === 0, deleteOnTermination: false },
}));
const server = { uuid: serverUuid, host: "h-0", spec: { volumes } };
const identity = { projectId: "p1", userId: "u1", isAdmin: false };
const id = await acceptVolumeImage(
  { images, volumes: { find }, storage, store: requests, clock },
  { server } as unknown as ActionTarget,
  {
    ...{ name: "mine", owner: "p1", visibility: "private", diskFormat: "raw", containerFormat: "bare", tags: [] },
    ...{ minDiskGib: 0, minRamMib: 0, isProtected: false, properties: {}, createdAtMs: 1, updatedAtMs: 1 },
  },
  { call: { requestId, token: null, minor: 90, identity } as unknown as KnownCall, ownedMax: null, sendsTokens: false },
);
process.stdout.write(id);
await client.close();
await requests.close();
