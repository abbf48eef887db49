import { afterAll, beforeAll, expect, test } from "vitest";
import { QUOTA_DEFAULTS } from "../../../services/api/compute/quotas/quota-defaults.ts";
import { beginOperationOn } from "../../rigs/begin-operation.ts";
import { eventually } from "../../rigs/eventually.ts";
import { OperationByHand } from "../../rigs/operation-by-hand.ts";
import { ApiRig } from "./api-rig.ts";
import { as } from "./attachment-calls.ts";

const CHARGED = { instances: 1, cores: 4, ram: 64 };

let rig: ApiRig;
beforeAll(async () => {
  rig = await ApiRig.start({ auth: "noauth2", quotas: QUOTA_DEFAULTS.unlimited });
});
afterAll(() => rig.close());

/** Charges a server that waits for the revert of a move, and reverts it. */
async function revert(project: string, kind: "migrate" | "resize"): Promise<void> {
  const uuid = await rig.bootActive("north", 0, { networks: "none" }, as(`admin:${project}`, 96));
  const { store } = rig.cell("north");
  const { task } = await beginOperationOn(store, { server: 0, uuid, kind, hosts: [1] });
  const move = new OperationByHand(store, task?.id ?? "");
  for (const to of ["handing-over", "starting", "succeed"] as const) await move.goOn(to);
  const charge = { serverUuid: uuid, amounts: CHARGED };
  expect(await rig.quotas.chargeResize(charge, QUOTA_DEFAULTS.unlimited)).toBeNull();
  const answer = await rig.post(`/v2.1/servers/${uuid}/action`, { revertResize: null }, as(`admin:${project}`, 96));
  expect(answer.statusCode).toBe(202);
  const reverting = store.tasks().find((one) => one.serverUuid === uuid && one.outcome === null);
  const back = new OperationByHand(store, reverting?.id ?? "");
  for (const to of ["retreating", "restoring", "succeed"] as const) await back.goOn(to);
  expect(await store.servers([uuid])).toMatchObject([{ status: "ACTIVE", taskState: null }]);
}

const cores = async (project: string) => (await rig.quotas.usage(project)).ofProject.cores;

test("the revert of a resize gives its charge back, but that of a migration leaves the charge of a resize that is yet to be accepted", async () => {
  await revert("migrated", "migrate");
  await revert("resized", "resize");
  await eventually("the end of the resize's charge", async () => (await cores("resized")) === 1);
  // It would have been looked at before.
  expect(await cores("migrated")).toBe(4);
});
