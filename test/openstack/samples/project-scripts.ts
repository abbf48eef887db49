import type { SampleRun, Script } from "./sample-run.ts";

const flavorAccess: Script = async (run) => {
  const values = { flavor_name: "test_flavor", flavor_id: "10", tenant_id: "fake_tenant" };
  await run.send("POST", "/flavors", { request: "flavor-create-req", values });
  const action = (request: string, rest: object = {}) =>
    run.send("POST", "/flavors/10/action", { request, values, ...rest });
  // From 2.7 on the access of a public flavor cannot be given, and this folder's flavor is public.
  if (run.minor >= 7) await action("flavor-access-add-tenant-req", { status: 409 });
  else {
    await action("flavor-access-add-tenant-req", { answer: "flavor-access-add-tenant-resp" });
    await run.get("/flavors/10/os-flavor-access", "flavor-access-list-resp");
    await action("flavor-access-remove-tenant-req", { answer: "flavor-access-remove-tenant-resp" });
  }
  await run.cloud.must("DELETE", "/flavors/10");
};

const extraSpecs: Script = async (run) => {
  const path = "/flavors/2/os-extra_specs";
  const values = { value1: "shared", value2: "1" };
  await run.send("POST", path, {
    request: "flavor-extra-specs-create-req",
    answer: "flavor-extra-specs-create-resp",
    values,
  });
  await run.get(path, "flavor-extra-specs-list-resp");
  await run.get(`${path}/hw:numa_nodes`, "flavor-extra-specs-get-resp");
  const change = { request: "flavor-extra-specs-update-req", answer: "flavor-extra-specs-update-resp" };
  await run.send("PUT", `${path}/hw:numa_nodes`, { ...change, values: { value1: "2" } });
  for (const key of ["hw:numa_nodes", "hw:cpu_policy"]) await run.cloud.must("DELETE", `${path}/${key}`);
};

const flavorManage: Script = async (run) => {
  const values = { flavor_name: "test_flavor", flavor_id: "10" };
  await run.send("POST", "/flavors", { request: "flavor-create-post-req", answer: "flavor-create-post-resp", values });
  await run.send("PUT", "/flavors/10", { request: "flavor-update-req", answer: "flavor-update-resp" });
  await run.cloud.call("DELETE", "/flavors/10", {});
};

const flavors: Script = async (run) => {
  const described = {
    id: "7",
    name: "m1.small.description",
    ram: 2_048,
    vcpus: 1,
    disk: 20,
    description: "test description",
  };
  if (run.minor >= 55) await run.cloud.must("POST", "/flavors", { flavor: described });
  await run.get("/flavors", "flavors-list-resp");
  await run.get("/flavors/detail", "flavors-detail-resp");
  await run.get(`/flavors/${run.minor >= 55 ? 7 : 1}`, "flavor-get-resp");
  await run.cloud.call("DELETE", "/flavors/7", {});
};

const PUBLIC_KEY =
  "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDx8nkQv/zgGgB4rMYmIf+6A4l6Rr+o/6lHBQdW5aYd44bd8JttDCE/F/pNRr0lRE+PiqSPO8nDPHw0010JeMH9gYgnnFlyY3/OcJ02RhIPyyxYpv9FhY+2YiUkpwFOcLImyrxEsYXpD/0d3ac30bNH6Sw9JD9UZHYcpSxsIbECHw== Generated-by-Nova";

const keypairs: Script = async (run) => {
  const { minor, cloud } = run;
  const values = { keypair_name: "keypair-one", keypair_type: "ssh", user_id: "user1", public_key: PUBLIC_KEY };
  await run.send("POST", "/os-keypairs", {
    ...{ request: "keypairs-post-req", answer: "keypairs-post-resp", values },
    // From 2.92 on a key pair is always imported, so the request that generates one is refused.
    status: minor >= 92 ? 400 : minor >= 2 ? 201 : 200,
  });
  await run.send("POST", "/os-keypairs", {
    ...{ request: "keypairs-import-post-req", answer: "keypairs-import-post-resp" },
    values: { ...values, keypair_name: "keypair-two" },
    status: minor >= 2 ? 201 : 200,
  });
  const query = minor >= 10 ? "?user_id=user1" : "";
  if (minor < 35) await run.get(`/os-keypairs${query}`, "keypairs-list-resp");
  if (minor < 35) await run.get(`/os-keypairs/keypair-two${query}`, "keypairs-get-resp");
  if (minor >= 35) await userKeypairs(run);
  for (const user of ["?user_id=user1", "?user_id=user2", "?user_id=admin"])
    for (const name of ["keypair-one", "keypair-two", "keypair-three"])
      await cloud.call("DELETE", `/os-keypairs/${name}${user}`, {});
};

async function userKeypairs(run: SampleRun): Promise<void> {
  for (const user_id of ["admin", "user1", "user2"])
    for (const name of ["keypair-two", "keypair-three"])
      await run.cloud.call("POST", "/os-keypairs", { body: { keypair: { name, user_id, public_key: PUBLIC_KEY } } });
  const page = "marker=keypair-three&limit=1";
  await run.get(`/os-keypairs?${page}`, "keypairs-list-resp");
  await run.get("/os-keypairs?user_id=user1&marker=keypair-three", "keypairs-list-user1-resp");
  await run.get(`/os-keypairs?user_id=user2&${page}`, "keypairs-list-user2-resp");
}

const quotaSets: Script = async (run) => {
  const path = "/os-quota-sets/fake_tenant";
  await run.get(path, "quotas-show-get-resp");
  await run.get(`${path}/defaults`, "quotas-show-defaults-get-resp");
  await run.get(`${path}/detail`, "quotas-show-detail-get-resp");
  const put = (where: string, name: string) =>
    run.send("PUT", where, { request: `${name}-req`, answer: `${name}-resp` });
  await put(path, "quotas-update-post");
  await put(path, "quotas-update-force-post");
  await put(`${path}?user_id=1`, "user-quotas-update-post");
  await run.get(`${path}?user_id=1`, "user-quotas-show-get-resp");
  await run.cloud.must("DELETE", path);
};

const usage: Script = async (run) => {
  await run.cloud.boot();
  const times = "start=2012-10-07T21:10:45&end=2096-10-07T22:10:45";
  const path = "/os-simple-tenant-usage";
  if (run.minor < 40) await run.get(`${path}?${times}`, "simple-tenant-usage-get");
  else await run.get(`${path}?${times}&detailed=1`, "simple-tenant-usage-get-all");
  if (run.minor >= 40) await run.get(`${path}?${times}&limit=1`, "simple-tenant-usage-get");
  const limit = run.minor >= 40 ? "&limit=1" : "";
  await run.get(`${path}?${times}&detailed=1${limit}`, "simple-tenant-usage-get-detail");
  await run.get(`${path}/default?${times}${limit}`, "simple-tenant-usage-get-specific");
};

/** Flavors, key pairs, groups, quotas and usage. */
export const PROJECT_SCRIPTS: Readonly<Record<string, Script>> = {
  "flavor-access": flavorAccess,
  "flavor-extra-specs": extraSpecs,
  "flavor-manage": flavorManage,
  flavors,
  limits: (run) => run.get("/limits", "limit-get-resp"),
  "os-keypairs": keypairs,
  "os-quota-class-sets": async (run) => {
    const path = "/os-quota-class-sets/test_class";
    await run.get(path, "quota-classes-show-get-resp");
    await run.send("PUT", path, { request: "quota-classes-update-post-req", answer: "quota-classes-update-post-resp" });
  },
  "os-quota-sets": quotaSets,
  "os-quota-sets-noop": quotaSets,
  "os-server-groups": async (run) => {
    const post = { request: "server-groups-post-req", answer: "server-groups-post-resp", values: { name: "test" } };
    const { server_group: group } = await run.send("POST", "/os-server-groups", post);
    await run.get("/os-server-groups", "server-groups-list-resp");
    await run.get(`/os-server-groups/${group.id}`, "server-groups-get-resp");
    await run.cloud.must("DELETE", `/os-server-groups/${group.id}`);
  },
  "os-simple-tenant-usage": usage,
};
