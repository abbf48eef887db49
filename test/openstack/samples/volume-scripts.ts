import type { Script } from "./sample-run.ts";

/** The type of upstream's samples, which the twin of Cinder has. */
const VOLUME_TYPE = "lvm-1";
const VALUES = { volume_name: "Volume Name", volume_desc: "Volume Description" };

const volumes: Script = async (run) => {
  const { cloud } = run;
  const of = { name: VALUES.volume_name, description: VALUES.volume_desc, volumeType: VOLUME_TYPE };
  const [server, volumeId] = [await cloud.boot(), cloud.volume(of)];
  await cloud.must("POST", `/servers/${server}/os-volume_attachments`, { volumeAttachment: { volumeId } });
  await cloud.inUse(volumeId);
  await run.get("/os-volumes?limit=1", "os-volumes-index-resp", { values: VALUES });
  await run.get("/os-volumes/detail?limit=1", "os-volumes-detail-resp", { values: VALUES });
  await run.get(`/os-volumes/${volumeId}`, "os-volumes-get-resp", { values: VALUES });
  await run.send("POST", "/os-volumes", {
    request: "os-volumes-post-req",
    answer: "os-volumes-post-resp",
    values: VALUES,
    // A new volume is not in use.
    differing: ["status", "attachments"],
    change: (body) => ({ volume: { ...body.volume, volume_type: VOLUME_TYPE } }),
  });
};

const snapshots: Script = async (run) => {
  const values = { snapshot_name: "snap-001", description: "Daily backup", volume_id: run.cloud.volume() };
  const post = { request: "snapshot-create-req", answer: "snapshot-create-resp", values };
  const { snapshot } = await run.send("POST", "/os-snapshots", post);
  await run.get("/os-snapshots", "snapshots-list-resp");
  await run.get("/os-snapshots/detail", "snapshots-detail-resp");
  await run.get(`/os-snapshots/${snapshot.id}`, "snapshots-show-resp", { values });
  await run.cloud.must("DELETE", `/os-snapshots/${snapshot.id}`, undefined, run.minor);
};

/** The proxies of the Block Storage API. */
export const VOLUME_SCRIPTS: Readonly<Record<string, Script>> = { "os-snapshots": snapshots, "os-volumes": volumes };
