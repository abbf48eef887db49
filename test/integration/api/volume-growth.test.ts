import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../rigs/eventually.ts";
import { OperationByHand } from "../../rigs/operation-by-hand.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2", volumes: "simple" });
});
afterEach(() => rig.close());

const ADMIN = { "x-auth-token": "admin:p", "openstack-api-version": "compute 2.89" };

test("a volume that grows keeps the mark that nobody knows whether the guest uses it or another one", async () => {
  const { store } = rig.cell("north");
  const open = () => store.tasks().find(({ kind, outcome }) => kind === "operate" && outcome === null)?.task;
  const server = await rig.bootActive("north", 0, { networks: "none" }, ADMIN);
  const volumeId = (await rig.post("/volume/v3/volumes", { volume: { size: 2 } }, ADMIN)).json().volume.id;
  const attachment = { volumeAttachment: { volumeId } };
  const attaching = await rig.post(`/v2.1/servers/${server}/os-volume_attachments`, attachment, ADMIN);
  expect(attaching.statusCode).toBe(200);
  await new OperationByHand(store, open()?.id ?? "").goOn("succeed");

  const replacedBy = randomUUID();
  const servers = store.servers.bind(store);
  store.servers = async (uuids) =>
    (await servers(uuids)).map((one) => ({
      ...one,
      spec: { ...one.spec, volumes: one.spec.volumes.map((volume) => ({ ...volume, replacedBy })) },
    }));
  const events = [{ name: "volume-extended", server_uuid: server, tag: volumeId }];
  expect((await rig.post("/v2.1/os-server-external-events", { events }, ADMIN)).statusCode).toBe(200);
  await eventually("the operation to begin", () => open() !== undefined);
  expect(open()?.work).toMatchObject({ value: { kind: "extend-volume", volume: { volumeId, replacedBy } } });
});
