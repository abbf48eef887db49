import type { Answer } from "./answer.ts";
import { HOSTS, IMAGE } from "./sample-cloud.ts";
import type { SampleRun, Script } from "./sample-run.ts";

const ADDRESSES = { access_ip_v4: "1.2.3.4", access_ip_v6: "80fe::" };
const USER_DATA = Buffer.from('#!/bin/bash\n/bin/su\necho "I am in you!"\n').toString("base64");
const PASSWORD = "seekr3t";

/** The values of upstream's requests for servers. */
export async function serverValues(run: SampleRun): Promise<Record<string, string>> {
  const neighbour = await run.cloud.boot({ availability_zone: "us-west" });
  return {
    ...ADDRESSES,
    ...{ image_id: IMAGE, uuid: neighbour, user_data: USER_DATA, name: "new-server-test", hostname: "custom-hostname" },
    ...{ availability_zone: "us-west", host: "http://openstack.example.com", key_name: "samples-key" },
    compute_endpoint: "http://openstack.example.com",
  };
}

/** Fields of requests that Berth refuses, each with a reason in `exceptions.ts`. The server is then created without them. */
const REFUSED = ["trusted_image_certificates", "block_device_mapping_v2"] as const;

/** Creates a server as the samples of the folder do, or in the plain way where it has none, and waits for it. */
async function create(run: SampleRun): Promise<string> {
  const values = await serverValues(run);
  if (!run.hasHere("server-create-req"))
    return run.cloud.boot({
      availability_zone: "us-west",
      user_data: USER_DATA,
      accessIPv4: "1.2.3.4",
      accessIPv6: "80fe::",
    });
  const { uuid: neighbour = "" } = values;
  let sent: Answer = null;
  const answer = await run.send("POST", "/servers", {
    ...{ request: "server-create-req", answer: "server-create-resp", status: 202, values },
    change: async (body) => {
      sent = await ourOwn(run, body, neighbour);
      return sent;
    },
  });
  const id = answer?.server?.id ?? (await withoutRefused(run, sent.server));
  await run.cloud.settled(id);
  await run.cloud.must("DELETE", `/servers/${neighbour}`);
  await run.cloud.settled(neighbour);
  return id;
}

async function withoutRefused(run: SampleRun, server: Answer): Promise<string> {
  const rest = Object.fromEntries(
    Object.entries(server).filter(([name]) => !REFUSED.some((refused) => refused === name)),
  );
  const { status, json } = await run.cloud.call("POST", "/servers", { body: { server: rest }, minor: run.minor });
  if (status !== 202) throw new Error(`POST /servers without ${REFUSED}: ${status} ${JSON.stringify(json)}`);
  return json.server.id;
}

const servers: Script = async (run) => {
  const id = await create(run);
  if (run.minor === 69) return run.cloud.whileCellIsDown(() => unknownServer(run, id));
  if (run.has("server-get-down-cell-resp"))
    await run.cloud.whileCellIsDown(async () => {
      await run.get(`/servers/${id}`, "server-get-down-cell-resp");
    });
  if (run.contains("server-get-resp", '"locked": true')) await run.act(id, { request: "lock-server-with-reason" });
  await run.get(`/servers/${id}`, "server-get-resp");
  const page = (name: string) => (run.contains(name, "servers_links") ? "?limit=1" : "");
  await run.get(`/servers${page("servers-list-resp")}`, "servers-list-resp");
  await run.get("/servers?limit=1&status=active&status=error", "servers-list-status-resp");
  await run.get(`/servers/detail${page("servers-details-resp")}`, "servers-details-resp");
  // Without a status the lists also have the servers that were deleted, as in Nova.
  const before = `changes-before=${encodeURIComponent("2096-01-01T00:00:00Z")}&status=ACTIVE`;
  await run.get(`/servers?${before}`, "servers-list-with-changes-before");
  await run.get(`/servers/detail?${before}`, "servers-details-with-changes-before");
  await run.cloud.must("POST", `/servers/${id}/action`, { unlock: null });
  await olderCreates(run);
  await placedCreates(run);
  const values = { ...ADDRESSES, hostname: "new-server-hostname" };
  await run.send("PUT", `/servers/${id}`, { request: "server-update-req", answer: "server-update-resp", values });
  if (run.hasHere("server-put-req"))
    await run.send("PUT", `/servers/${id}`, {
      ...{ request: "server-put-req", answer: "server-put-resp" },
    });
  await run.send("POST", "/os-server-groups", {
    ...{ request: "server-groups-post-req", answer: "server-groups-post-resp", values: { name: "test" } },
  });
  await actions(run, id);
};

/** The views of a server whose cell does not answer. */
async function unknownServer(run: SampleRun, id: string): Promise<void> {
  await run.get(`/servers/${id}`, "server-get-resp");
  await run.get("/servers", "servers-list-resp");
  await run.get("/servers/detail", "servers-details-resp");
}

/** Names our port, network, group and image wherever a sample names one of upstream's test cloud. */
async function ourOwn(run: SampleRun, { server, ...rest }: Answer, neighbour: string): Promise<Answer> {
  const { cloud } = run;
  const hints = rest["OS-SCH-HNT:scheduler_hints"];
  if (hints?.same_host !== undefined) {
    hints.same_host = neighbour;
    run.nameNeighbour(neighbour);
  }
  if (hints?.group !== undefined) {
    const made = await cloud.must("POST", "/os-server-groups", {
      server_group: { name: "samples", policy: "affinity" },
    });
    hints.group = made.server_group.id;
  }
  if (Array.isArray(server.networks))
    server.networks = server.networks.map(({ port: _port, ...network }: Answer) => ({
      ...network,
      uuid: cloud.network.id,
    }));
  return { ...rest, server };
}

/** The base folder also has the requests that upstream's other tests send from 2.37 and from 2.57 on. */
async function olderCreates(run: SampleRun): Promise<void> {
  if (run.minor > 1) return;
  const values = await serverValues(run);
  for (const [request, minor] of [
    ["server-create-req-v237", 37],
    ["server-create-req-v257", 57],
  ] as const)
    await run.send("POST", "/servers", { request, minor, values, status: 202 });
}

async function placedCreates(run: SampleRun): Promise<void> {
  if (run.minor !== 74) return;
  const values = await serverValues(run);
  for (const kind of ["with-host-and-node", "with-only-host", "with-only-node"])
    await run.send("POST", "/servers", {
      ...{ request: `server-create-req-${kind}`, answer: "server-create-resp", status: 202, values },
      change: ({ server, ...rest }) => ({ ...rest, server: { ...server, ...placeOf(server) } }),
    });
}

/** Names one of our hosts wherever the sample names one of upstream's. */
function placeOf(server: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> {
  return {
    ...("host" in server && { host: HOSTS[0] }),
    ...("hypervisor_hostname" in server && { hypervisor_hostname: HOSTS[0] }),
  };
}

async function actions(run: SampleRun, id: string): Promise<void> {
  const { cloud } = run;
  await run.act(id, { request: "lock-server-with-reason" });
  await cloud.must("POST", `/servers/${id}/action`, { unlock: null });
  await run.act(id, { request: "server-action-reboot", values: { type: "HARD" } });
  await run.act(id, { request: "server-action-stop", values: { action: "os-stop" } });
  await run.act(id, { request: "server-action-start", values: { action: "os-start" } });
  await run.act(id, { request: "server-action-trigger-crash-dump" });
  const rebuild = {
    ...ADDRESSES,
    uuid: IMAGE,
    name: "foobar",
    pass: PASSWORD,
    hostname: "updated-hostname",
    user_data: USER_DATA,
    disk_config: "AUTO",
  };
  if (!run.hasHere("server-action-rebuild")) return actionsOfBase(run, id);
  if (run.minor === 26) await cloud.must("PUT", `/servers/${id}/tags`, { tags: ["tag1", "tag2"] });
  if (run.minor >= 54) await keyPair(run);
  await run.act(id, {
    ...{ request: "server-action-rebuild", answer: "server-action-rebuild-resp" },
    values: { ...rebuild, key_name: "samples-key", description: "updated", preserve_ephemeral: "false" },
    differing: ["status", "OS-EXT-STS:task_state", "OS-EXT-STS:power_state"],
  });
  await actionsOfBase(run, id);
}

async function actionsOfBase(run: SampleRun, id: string): Promise<void> {
  const { cloud } = run;
  await run.act(id, {
    request: "server-action-create-image",
    answer: "server-action-create-image-resp",
    values: { name: "foo-image" },
  });
  if (run.minor > 1) return;
  // The sample's own server can only be on the host of its neighbour.
  const moved = await cloud.boot();
  await run.act(moved, { request: "server-action-resize", values: { id: "2" } });
  await run.act(moved, { request: "server-action-revert-resize" });
  await cloud.act(moved, "resize", { flavorRef: "2" });
  await run.act(moved, { request: "server-action-confirm-resize", status: 204 });
}

/** Makes sure that the key pair of the samples exists. */
async function keyPair(run: SampleRun): Promise<void> {
  const found = await run.cloud.call("GET", "/os-keypairs/samples-key", {});
  if (found.status === 404) await run.cloud.must("POST", "/os-keypairs", { keypair: { name: "samples-key" } });
}

/** An active server and one action of the folder on it, or several after each other. */
const actsInOrder =
  (
    ...steps: readonly {
      readonly request: string;
      readonly answer?: string;
      readonly status?: number;
      readonly values?: Record<string, string>;
    }[]
  ): Script =>
  async (run) => {
    const id = await run.cloud.boot();
    for (const step of steps) await run.act(id, step);
  };

const shelve: Script = async (run) => {
  const { cloud } = run;
  const id = await cloud.boot({ availability_zone: "us-west" });
  await run.act(id, { request: "os-shelve", values: { action: "shelve" } });
  await run.act(id, { request: "os-unshelve", values: { action: "unshelve" } });
  await cloud.act(id, "shelve");
  if (run.minor === 1) await run.act(id, { request: "os-shelve-offload", values: { action: "shelveOffload" } });
  for (const request of [
    "os-unshelve-az",
    "os-unshelve-host",
    "os-unshelve-az-host",
    "os-unshelve-host-and-unpin-az",
    "os-unshelve-unpin-az",
  ]) {
    if (!run.has(request)) continue;
    const shown = await cloud.settled(id);
    if (shown.status === "ACTIVE") await cloud.act(id, "shelve");
    if ((await cloud.settled(id)).status === "SHELVED") await cloud.act(id, "shelveOffload");
    await run.act(id, { request, values: { action: "unshelve", availability_zone: "us-west", host: HOSTS[0] } });
  }
};

const evacuate: Script = async (run) => {
  const { cloud } = run;
  for (const [request, answer] of [
    ["server-evacuate-req", "server-evacuate-resp"],
    ["server-evacuate-find-host-req", "server-evacuate-find-host-resp"],
  ] as const) {
    const id = await cloud.boot();
    const from = (await cloud.settled(id))["OS-EXT-SRV-ATTR:host"];
    const target = HOSTS.find((host) => host !== from) ?? "";
    await cloud.forceDown(from, true);
    const values = { host: target, adminPass: "MySecretPass", onSharedStorage: "False", force: "true" };
    await run.act(id, { request, ...(run.minor < 14 && { answer }), status: 200, values });
    await cloud.forceDown(from, false);
  }
};

const migrate: Script = async (run) => {
  const { cloud } = run;
  const id = await cloud.boot();
  const target = async () => {
    const from = (await cloud.settled(id))["OS-EXT-SRV-ATTR:host"];
    return HOSTS.find((host) => host !== from) ?? "";
  };
  await run.act(id, { request: "live-migrate-server", values: { hostname: await target(), force: "False" } });
  for (const request of ["migrate-server", "migrate-server-null"]) {
    if (!run.has(request)) continue;
    await run.act(id, { request, values: { hostname: JSON.stringify(await target()) } });
    await cloud.call("POST", `/servers/${id}/action`, { body: { confirmResize: null } });
    await cloud.settled(id);
  }
};

const remoteConsoles: Script = async (run) => {
  const id = await run.cloud.boot();
  for (const kind of ["vnc", "spice", "serial"])
    await run.act(id, {
      ...{ request: `get-${kind}-console-post-req`, answer: `get-${kind}-console-post-resp`, status: 200 },
      values: { action: `os-get${kind === "serial" ? "Serial" : kind.toUpperCase()}Console` },
      // The port of the console proxy is another one.
      differing: ["url"],
    });
  for (const kind of ["vnc", "mks", "spice-direct"])
    await run.send("POST", `/servers/${id}/remote-consoles`, {
      ...{ request: `create-${kind}-console-req`, answer: `create-${kind}-console-resp` },
    });
  await run.act(id, { request: "get-rdp-console-post-req", status: 400, values: { action: "os-getRDPConsole" } });
  await run.send("POST", `/servers/${id}/remote-consoles`, { request: "create-rdp-console-req", status: 400 });
};

export const SERVER_SCRIPTS: Readonly<Record<string, Script>> = {
  servers,
  "servers-sort": async (run) => {
    await run.cloud.boot();
    await run.get("/servers?sort_key=display_name&sort_dir=asc", "server-sort-keys-list-resp");
  },
  "os-admin-actions": actsInOrder(
    { request: "admin-actions-reset-network", status: 410 },
    { request: "admin-actions-inject-network-info" },
    { request: "admin-actions-reset-server-state" },
  ),
  "os-admin-password": actsInOrder({ request: "admin-password-change-password", values: { password: "foo" } }),
  "os-console-output": async (run) => {
    const id = await run.cloud.boot();
    await run.act(id, { request: "console-output-post-req", answer: "console-output-post-resp", status: 200 });
  },
  "os-create-backup": actsInOrder({ request: "create-backup-req", answer: "create-backup-resp" }),
  "os-deferred-delete": async (run) => {
    const id = await run.cloud.boot();
    await run.cloud.must("DELETE", `/servers/${id}`);
    await run.cloud.settled(id);
    await run.act(id, { request: "restore-post-req" });
    await run.act(id, { request: "force-delete-post-req" });
  },
  "os-evacuate": evacuate,
  "os-lock-server": actsInOrder(
    { request: "lock-server" },
    { request: "unlock-server" },
    { request: "lock-server-with-reason" },
  ),
  "os-migrate-server": migrate,
  "os-multiple-create": async (run) => {
    const values = { image_id: IMAGE, min_count: "2", max_count: "3" };
    for (const kind of ["multiple-create", "multiple-create-no-resv"])
      await run.send("POST", "/servers", {
        request: `${kind}-post-req`,
        answer: `${kind}-post-resp`,
        status: 202,
        values,
      });
  },
  "os-pause-server": actsInOrder({ request: "pause-server" }, { request: "unpause-server" }),
  "os-preserve-ephemeral-rebuild": async (run) => {
    const id = await run.cloud.boot();
    const request = "server-action-rebuild-preserve-ephemeral";
    const values = { uuid: IMAGE, name: "foobar", pass: PASSWORD, preserve_ephemeral: "false" };
    await run.act(id, { request, answer: `${request}-resp`, values, differing: ["status"] });
  },
  "os-remote-consoles": remoteConsoles,
  "os-rescue": async (run) => {
    const id = await run.cloud.boot({ adminPass: "x" });
    await run.act(id, {
      request: "server-rescue-req",
      answer: "server-rescue",
      status: 200,
      values: { password: PASSWORD },
    });
    // The driver of Nova's test leaves the guest off, and no driver of Berth does.
    await run.get(`/servers/${id}`, "server-get-resp-rescue", { differing: ["OS-EXT-STS:power_state"] });
    await run.act(id, { request: "server-unrescue-req" });
    await run.get(`/servers/${id}`, "server-get-resp-unrescue");
    await run.act(id, { request: "server-rescue-req-with-image-ref", status: 200 });
  },
  "os-shelve": shelve,
  "os-suspend-server": actsInOrder({ request: "server-suspend" }, { request: "server-resume" }),
};
