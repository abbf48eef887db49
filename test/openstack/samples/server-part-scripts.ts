import { randomUUID } from "node:crypto";
import { eventually } from "../../rigs/eventually.ts";
import type { Answer } from "./answer.ts";
import { HOSTS, SLOW_HOST } from "./sample-cloud.ts";
import type { SampleRun, Script } from "./sample-run.ts";

const interfaces: Script = async (run) => {
  const { cloud } = run;
  const id = await cloud.boot({ networks: [{ uuid: cloud.network.id, tag: "first" }] });
  const path = `/servers/${id}/os-interface`;
  const [attached] = (await cloud.must("GET", path)).interfaceAttachments;
  await run.get(path, "attach-interfaces-list-resp");
  await run.get(`${path}/${attached.port_id}`, "attach-interfaces-show-resp");
  const { port } = await cloud.must("POST", "/network/v2.0/ports", { port: { network_id: cloud.network.id } });
  const change = ({ interfaceAttachment }: Answer) => ({
    interfaceAttachment: { ...interfaceAttachment, port_id: port.id },
  });
  const values = { port_id: port.id, tag: "public" };
  await run.send("POST", path, {
    request: "attach-interfaces-create-req",
    answer: "attach-interfaces-create-resp",
    values,
    change,
  });
  await run.send("POST", path, {
    ...{ request: "attach-interfaces-create-net_id-req", answer: "attach-interfaces-create-resp", values },
    change: ({ interfaceAttachment }) => ({
      interfaceAttachment: {
        ...interfaceAttachment,
        net_id: cloud.network.id,
        fixed_ips: [{ ip_address: "10.64.9.9" }],
      },
    }),
  });
};

const instanceActions: Script = async (run) => {
  const id = await run.cloud.boot();
  await run.cloud.act(id, "os-stop");
  const path = `/servers/${id}/os-instance-actions`;
  const [stop, created] = (await run.cloud.must("GET", path)).instanceActions;
  await run.get(`${path}/${stop.request_id}`, "instance-action-get-resp");
  await run.get(`${path}/${stop.request_id}`, "instance-action-get-non-admin-resp", { as: "fake:default" });
  await run.get(path, "instance-actions-list-resp");
  await run.get(`${path}?limit=1`, "instance-actions-list-with-limit-resp");
  await run.get(`${path}?marker=${stop.request_id}`, "instance-actions-list-with-marker-resp");
  await run.get(`${path}?changes-since=${stop.start_time}`, "instance-actions-list-with-changes-since");
  await run.get(`${path}?changes-before=${created.updated_at}`, "instance-actions-list-with-changes-before");
};

/** Makes one live migration that has ended, and returns its server. */
async function migrated(run: SampleRun): Promise<string> {
  const id = await run.cloud.boot();
  await run.cloud.act(id, "resize", { flavorRef: "6" });
  await run.cloud.act(id, "confirmResize");
  await run.cloud.act(id, "os-migrateLive", { host: null, block_migration: "auto" });
  return id;
}

const migrations: Script = async (run) => {
  await migrated(run);
  await migrated(run);
  const get = (query: string, answer: string) =>
    run.get(`/os-migrations${query}`, answer, { differing: ["status", "migration_type"], optional: ["links"] });
  await get("", "migrations-get");
  await get("?limit=1", "migrations-get-with-limit");
  const { migrations: all } = await run.cloud.must("GET", "/os-migrations");
  await get(`?marker=${all[0].uuid}`, "migrations-get-with-marker");
  await get("?changes-since=2020-01-01T00:00:00Z", "migrations-get-with-changes-since");
  await get("?changes-before=2096-01-01T00:00:00Z", "migrations-get-with-changes-before");
  await get("?project_id=default", "migrations-get-with-user-or-project-id");
};

/** The server's zone is that of the slow host, in which it stays. */
const serverMigrations: Script = async (run) => {
  const { cloud } = run;
  const id = await cloud.boot({ availability_zone: `nova:${SLOW_HOST}` });
  if (run.hasHere("live-migrate-server"))
    await run.act(id, { request: "live-migrate-server", values: { hostname: HOSTS[2] } }, { waits: false });
  else
    await cloud.must("POST", `/servers/${id}/action`, {
      "os-migrateLive": { host: HOSTS[2], block_migration: "auto" },
    });
  const path = `/servers/${id}/migrations`;
  const migration = await eventually(`a live migration of ${id} is running`, async () => {
    const { migrations } = await cloud.must("GET", path);
    return migrations.find(({ status }: Answer) => status === "running");
  });
  const values = { server_uuid: id };
  await run.get(path, "migrations-index", { values });
  await run.get(`${path}/${migration.id}`, "migrations-get", { values });
  await run.send("POST", `${path}/${migration.id}/action`, { request: "force_complete", status: 202 });
  await cloud.settled(id);
};

const tags: Script = async (run) => {
  const id = await run.cloud.boot();
  const path = `/servers/${id}/tags`;
  const values = { tag1: "tag1", tag2: "tag2" };
  await run.send("PUT", path, { request: "server-tags-put-all-req", answer: "server-tags-put-all-resp", values });
  await run.get(path, "server-tags-index-resp");
  await run.get(`/servers/${id}`, "server-tags-show-details-resp");
  await run.get("/servers/detail", "servers-tags-details-resp");
};

const shares: Script = async (run) => {
  const id = await run.cloud.boot();
  await run.cloud.act(id, "os-stop");
  const path = `/servers/${id}/shares`;
  const values = { share_id: randomUUID(), tag: "my-share" };
  await run.send("POST", path, {
    ...{ request: "server-shares-create-req", answer: "server-shares-create-resp", status: 201, values },
  });
  await run.get(path, "server-shares-list-resp");
  await run.get(`${path}/${values.share_id}`, "server-shares-show-resp");
};

const volumeAttachments: Script = async (run) => {
  const id = await run.cloud.boot();
  const path = `/servers/${id}/os-volume_attachments`;
  const [volume, other] = [run.cloud.volume(), run.cloud.volume()];
  const values = {
    ...{ volume_id: volume, volume_id2: other, new_volume_id: other, server_id: id, id: volume },
    ...{ device: "/dev/sdb", tag: "foo" },
  };
  await run.send("POST", path, {
    request: "attach-volume-to-server-req",
    ...(run.minor < 101 ? { answer: "attach-volume-to-server-resp" } : { status: 202 }),
    values,
  });
  await run.cloud.inUse(volume);
  await run.get(`${path}/${volume}`, "volume-attachment-detail-resp");
  // Requests of newer versions name no device, and the server's first free one is another than upstream's.
  const [{ device }] = (await run.cloud.must("GET", path)).volumeAttachments;
  await run.send("PUT", `${path}/${volume}`, {
    request: "update-volume-attachment-delete-flag-req",
    status: 202,
    values: { ...values, device },
  });
  await run.cloud.must("POST", path, { volumeAttachment: { volumeId: other } });
  await run.cloud.inUse(other);
  await run.get(path, "list-volume-attachments-resp");
  const target = await run.cloud.migrate(id, volume);
  const swapped = { ...values, new_volume_id: target, volume_id2: target };
  await run.send("PUT", `${path}/${volume}`, { request: "update-volume-req", status: 202, values: swapped });
  await run.cloud.migrated(volume);
};

const securityGroups: Script = async (run) => {
  const { cloud } = run;
  const path = "/os-security-groups";
  const [own] = (await cloud.must("GET", path, undefined, run.minor)).security_groups;
  // The default group of upstream's test cloud has no rules.
  for (const { id } of own.rules) await cloud.must("DELETE", `/os-security-group-rules/${id}`, undefined, run.minor);
  const server = await cloud.boot();
  await run.get(`/servers/${server}${path}`, "server-security-groups-list-resp");
  await run.get(path, "security-groups-list-get-resp");
  await run.get(`${path}/${own.id}`, "security-groups-get-resp");
  const values = { group_name: "samples", description: "description" };
  const { security_group: group } = await run.send("POST", path, {
    ...{ request: "security-group-post-req", answer: "security-groups-create-resp", values },
  });
  await run.send("POST", "/os-security-group-rules", {
    ...{ request: "security-group-rules-post-req", answer: "security-group-rules-post-resp" },
    change: ({ security_group_rule: rule }) => ({ security_group_rule: { ...rule, parent_group_id: group.id } }),
    differing: ["parent_group_id"],
  });
  for (const action of ["add", "remove"])
    await run.act(server, { request: `security-group-${action}-post-req`, values });
  await cloud.must("DELETE", `${path}/${group.id}`, undefined, run.minor);
};

export const SERVER_PART_SCRIPTS: Readonly<Record<string, Script>> = {
  "os-attach-interfaces": interfaces,
  "os-instance-actions": instanceActions,
  "os-migrations": migrations,
  "os-security-groups": securityGroups,
  "os-server-diagnostics": async (run) => {
    const id = await run.cloud.boot();
    await run.get(`/servers/${id}/diagnostics`, "server-diagnostics-get-resp");
  },
  "os-console-auth-tokens": async (run) => {
    const opened = await run.send("POST", `/servers/${await run.cloud.boot()}/remote-consoles`, {
      request: "create-serial-console-req",
    });
    const token = new URL(opened?.remote_console?.url ?? "ws://none/").searchParams.get("token");
    if (token !== null)
      await run.get(`/os-console-auth-tokens/${token}`, "get-console-connect-info-get-resp", {
        // The sample of 2.99 shows a graphical console, which has none.
        differing: ["internal_access_path"],
      });
  },
  "os-server-external-events": async (run) => {
    const id = await run.cloud.boot();
    const values = { name: "network-changed", status: "completed", tag: randomUUID(), uuid: id };
    await run.send("POST", "/os-server-external-events", {
      request: "event-create-req",
      answer: "event-create-resp",
      values,
    });
  },
  "os-server-password": async (run) => {
    const id = await run.cloud.boot();
    await run.get(`/servers/${id}/os-server-password`, "get-password-resp");
  },
  "os-server-shares": shares,
  "os-server-tags": tags,
  "os-server-topology": async (run) => {
    const id = await run.cloud.boot({ flavorRef: "6" });
    await run.get(`/servers/${id}/topology`, "servers-topology-resp");
    await run.get(`/servers/${id}/topology`, "servers-topology-resp-user", { as: "fake:default" });
  },
  "os-volume_attachments": volumeAttachments,
  "server-ips": async (run) => {
    const id = await run.cloud.boot();
    await run.get(`/servers/${id}/ips`, "server-ips-resp");
    await run.get(`/servers/${id}/ips/${run.cloud.network.name}`, "server-ips-network-resp");
  },
  "server-metadata": async (run) => {
    const path = `/servers/${await run.cloud.boot()}/metadata`;
    const all = { request: "server-metadata-all-req", answer: "server-metadata-all-resp" };
    await run.send("PUT", path, { ...all, values: { value: "Foo Value" } });
    await run.send("POST", path, { ...all, values: { value: "Bar Value" } });
    await run.get(path, "server-metadata-all-resp");
    await run.send("PUT", `${path}/foo`, {
      ...{ request: "server-metadata-req", answer: "server-metadata-resp", values: { value: "Bar Value" } },
    });
    await run.get(`${path}/foo`, "server-metadata-resp");
  },
  "server-migrations": serverMigrations,
};
