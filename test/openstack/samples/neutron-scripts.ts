import type { Answer } from "./answer.ts";
import { POOL } from "./sample-cloud.ts";
import type { SampleRun, Script } from "./sample-run.ts";

/** A microversion at which floating IPs are still allocated through the Compute API. */
const FLOATING_IP_MINOR = 35;

/** The addresses that a server shows. */
async function addressesOf({ cloud }: SampleRun, id: string) {
  const { server } = await cloud.must("GET", `/servers/${id}`);
  const all: readonly Answer[] = server.addresses[cloud.network.name];
  const ofKind = (kind: string): readonly string[] =>
    all.filter((one) => one["OS-EXT-IPS:type"] === kind).map(({ addr }) => addr);
  return { fixed: ofKind("fixed"), floating: ofKind("floating") };
}

const floatingIps: Script = async (run) => {
  const [add, remove] = ["server-action-addfloatingip-req", "server-action-removefloatingip-req"];
  if (!run.hasHere(add)) return;
  const { cloud } = run;
  const id = await cloud.boot();
  const before = await addressesOf(run, id);
  const made = await cloud.must("POST", "/os-floating-ips", { pool: POOL }, FLOATING_IP_MINOR);
  const values = { address: made.floating_ip.ip, fixed_address: before.fixed[0] ?? "" };
  await run.act(id, { request: add, values });
  run.expectEffect(add, await addressesOf(run, id), { ...before, floating: [values.address] });
  await run.act(id, { request: remove, values });
  run.expectEffect(remove, await addressesOf(run, id), before);
};

const fixedIps: Script = async (run) => {
  const [add, remove] = ["multinic-add-fixed-ip-req", "multinic-remove-fixed-ip-req"];
  const { cloud } = run;
  const id = await cloud.boot();
  const before = await addressesOf(run, id);
  await run.act(id, { request: add, values: { networkId: cloud.network.id } });
  const after = await addressesOf(run, id);
  run.expectEffect(add, after.fixed.length, before.fixed.length + 1);
  const ip = after.fixed.find((address) => !before.fixed.includes(address)) ?? "";
  await run.act(id, { request: remove, values: { ip } });
  run.expectEffect(remove, await addressesOf(run, id), before);
};

/** The scripts that need the cloud with Neutron, since ports of Berth's own network have one address each and no floating IPs. */
export const NEUTRON_SCRIPTS: Readonly<Record<string, Script>> = {
  "os-multinic": fixedIps,
  servers: floatingIps,
};
