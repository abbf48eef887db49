import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { findCommand } from "../../../cli/commands.ts";
import { OPERATIONS } from "../../../core/tasks/operation-kinds.ts";
import { planOperation } from "../../../core/tasks/plan-operation.ts";
import { beginOperationOn } from "../../rigs/begin-operation.ts";
import { eventually } from "../../rigs/eventually.ts";
import { keepOutput } from "../../rigs/keep-output.ts";
import { OperationByHand } from "../../rigs/operation-by-hand.ts";
import { ApiRig } from "./api-rig.ts";
import { ADMIN, attachmentCalls } from "./attachment-calls.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2", volumes: "simple" });
});
afterEach(() => rig.close());

const { call, newVolume, attach, show, active, north, openTask, finish, attached } = attachmentCalls(() => rig);
const settle = (server: string, volume: string, body: object = {}, who = ADMIN) =>
  call("POST", `/berth/v1/servers/${server}/volumes/${volume}/settle`, body, who);

/** A server whose host was forced down while a volume of it was replaced. */
async function inDoubt(): Promise<{ readonly server: string; readonly own: string; readonly other: string }> {
  const [server, own, other] = [await active(), await newVolume(), randomUUID()];
  await attached(server, own);
  const [known] = await north().servers([server]);
  const volume = known?.spec.volumes[0];
  if (known === undefined || volume === undefined) throw new Error("no volume");
  const swapped = { ...volume, replacedBy: other };
  const holding = (await north().holdings([server]))[0] ?? null;
  const planned = planOperation({ taskId: randomUUID(), kind: "swap-volume", server: known, holding, volume: swapped });
  if (planned.kind !== "planned") throw new Error(planned.kind);
  expect(await north().begin([planned.begin])).toMatchObject([{ kind: "begun" }]);
  await finish(server, "pivoting", "lost");
  expect((await show(server)).status).toBe("ERROR");
  return { server, own, other };
}
/** The same for a server whose move waits for its confirmation. */
async function inDoubtUnconfirmed(): Promise<{ readonly server: string; readonly own: string }> {
  const [server, own] = [await active(), await newVolume()];
  await attached(server, own);
  const { task } = await beginOperationOn(north(), { server: 0, uuid: server, kind: "migrate", hosts: [1] });
  const move = new OperationByHand(north(), task?.id ?? "");
  for (const to of ["handing-over", "starting", "succeed"] as const) await move.goOn(to);
  const volume = (await north().servers([server]))[0]?.spec.volumes[0];
  if (volume === undefined) throw new Error("no volume");
  const swapped = { ...volume, replacedBy: randomUUID() };
  await beginOperationOn(north(), { server: 0, uuid: server, kind: "swap-volume-unconfirmed", volume: swapped });
  await finish(server, "detaching-kept", "pivoting", "lost");
  return { server, own };
}
const messageOf = (json: {
  readonly badRequest?: { readonly message: string };
  readonly conflictingRequest?: { readonly message: string };
}) => (json.badRequest ?? json.conflictingRequest)?.message;
const marks = async (server: string) =>
  (await north().servers([server]))[0]?.spec.volumes.map(({ volumeId, replacedBy }) => [volumeId, replacedBy]);

test("an operator lets the host look again which volume its guest uses, and the volume is no longer in doubt", async () => {
  const { server, own, other } = await inDoubt();
  const refused = await call("POST", `/v2.1/servers/${server}/action`, { "os-migrateLive": null });
  expect(refused.status).toBeGreaterThanOrEqual(400);
  const answer = await settle(server, other);
  expect(answer).toEqual({
    status: 202,
    json: { server, host: "host-0", volume: own, replaced_by: other, operation: expect.any(String) },
  });
  expect(openTask(server)).toMatchObject({ id: answer.json.operation, work: { value: { kind: "settle-volume" } } });
  expect((await settle(server, own)).status).toBe(409);
  await finish(server, "calling-off", "succeed");
  expect(await marks(server)).toEqual([[own, ""]]);
  expect((await settle(server, own)).json.conflictingRequest.message).toContain("is not in doubt");
});

test("each status in which a server may be shelved or deleted softly on its host lets its volume be settled, as the audit advises", () => {
  for (const kind of ["settle-volume", "settle-volume-own", "settle-volume-other"] as const)
    expect(OPERATIONS[kind].allowedFrom).toEqual(expect.arrayContaining([...OPERATIONS["detach-volume"].allowedFrom]));
});

test.each([
  ["own", "settle-volume-own"],
  ["other", "settle-volume-other"],
] as const)("an operator's word (%s) counts for a host that is forced down alone", async (uses, kind) => {
  const { server, own } = await inDoubt();
  const early = await settle(server, own, { guest_uses: uses });
  expect([early.status, early.json.conflictingRequest.message]).toEqual([409, expect.stringContaining("host-0")]);
  expect(await marks(server)).toMatchObject([[own, expect.stringMatching(/./)]]);
  const admin = rig.cell("north").store.hostAdmin();
  await admin.setForcedDown("host-0", true);
  await eventually("the statement to be taken", async () => {
    return (await settle(server, own, { guest_uses: uses })).status === 202;
  });
  expect(openTask(server)?.work).toMatchObject({ value: { kind } });
  await finish(server, "succeed");
  expect(await marks(server)).toEqual([[own, ""]]);
});

test("settling is refused for what is not in doubt, for unknown servers and volumes, and for anybody but admins", async () => {
  const [server, own] = [await active(), await newVolume()];
  await attached(server, own);
  expect((await settle(server, own)).status).toBe(409);
  expect((await settle(server, randomUUID())).status).toBe(404);
  expect((await settle(randomUUID(), own)).status).toBe(404);
  expect((await settle(server, own, { guest_uses: "both" })).status).toBe(400);
  expect((await settle(server, own, {}, "bob:p")).status).toBe(403);
  expect((await attach(server, await newVolume())).status).toBe(200);
});

/** Runs `berth volume settle <words>` in this process. */
function command(...words: readonly string[]): ReturnType<typeof keepOutput> {
  const api = `http://127.0.0.1:${rig.api.address.port}`;
  const found = findCommand(["volume", "settle", ...words, "--api", api, "--token", ADMIN]);
  if (found.kind !== "command") throw new Error(found.kind);
  return keepOutput(() => found.command.run(found.argv));
}

test("`berth volume settle` lets the host look again, and says where to see how that ends", async () => {
  const { server, own, other } = await inDoubt();
  const { code, text } = await command(server, other);
  expect([code, text]).toEqual([
    0,
    `server ${server}: host host-0 is asked (volume ${own}, replaced by ${other}); operation ${openTask(server)?.id}\n` +
      `see how it ends: berth explain ${server}\n`,
  ]);
  expect(openTask(server)?.work).toMatchObject({ value: { kind: "settle-volume" } });
  await finish(server, "calling-off", "succeed");
  expect(await marks(server)).toEqual([[own, ""]]);
});

test("`berth volume settle --guest-uses` is an operator's word about a host that is forced down, and is refused otherwise", async () => {
  const { server, own, other } = await inDoubt();
  await expect(command(server, own, "--guest-uses", "other")).rejects.toThrow(/host-0/);
  expect(await marks(server)).toEqual([[own, other]]);
  await rig.cell("north").store.hostAdmin().setForcedDown("host-0", true);
  const settled = await eventually("the statement to be taken", () =>
    command(server, own, "--guest-uses", "other").catch(() => null),
  );
  expect(settled.code).toBe(0);
  expect(settled.text).toContain(`server ${server}: Cinder is told that the guest uses its other volume`);
  expect(openTask(server)?.work).toMatchObject({ value: { kind: "settle-volume-other" } });
});

test("`berth volume settle` names what is missing, wrong or unknown, and changes nothing", async () => {
  const { server, own, other } = await inDoubt();
  expect(await command(server)).toMatchObject({ code: 2 });
  expect(await command(server, own, "--guest-uses", "both")).toMatchObject({ code: 2 });
  await expect(command(server, randomUUID())).rejects.toThrow(/has no volume/);
  await expect(command(randomUUID(), own)).rejects.toThrow(/could not be found/);
  expect(await marks(server)).toEqual([[own, other]]);
});

test("a move whose server has a volume in doubt is not reverted, since its guest alone knows which one it has used, until that is settled", async () => {
  const { server, own } = await inDoubtUnconfirmed();
  expect((await show(server)).status).toBe("VERIFY_RESIZE");
  const revert = () => call("POST", `/v2.1/servers/${server}/action`, { revertResize: null });
  const refused = await revert();
  expect([refused.status, refused.json.conflictingRequest.message]).toEqual([
    409,
    expect.stringMatching(/it is unknown whether its guest uses volume .* Confirm the move, or ask your administrator/),
  ]);
  expect((await settle(server, own)).status).toBe(202);
  await finish(server, "calling-off", "succeed");
  expect([(await show(server)).status, await marks(server)]).toEqual(["VERIFY_RESIZE", [[own, ""]]]);
  expect((await revert()).status).toBe(202);
});

test("a volume in doubt is not detached in VERIFY_RESIZE, where a hard reboot is not possible either, and is when it is settled", async () => {
  const { server, own } = await inDoubtUnconfirmed();
  const detach = () => call("DELETE", `/v2.1/servers/${server}/os-volume_attachments/${own}`);
  const refused = await detach();
  expect([refused.status, messageOf(refused.json)]).toEqual([
    400,
    expect.stringMatching(/cannot be detached now: it is unknown .* Confirm the move, or ask your administrator/),
  ]);
  expect((await call("POST", `/v2.1/servers/${server}/action`, { reboot: { type: "HARD" } })).status).toBe(409);
  expect((await settle(server, own)).status).toBe(202);
  await finish(server, "calling-off", "succeed");
  expect((await detach()).status).toBe(202);
});

test("an operator has a volume that is not in doubt connected to the guest that the source of an unconfirmed move keeps", async () => {
  const { server, own } = await inDoubtUnconfirmed();
  expect((await settle(server, own)).status).toBe(202);
  await finish(server, "calling-off", "succeed");
  expect((await settle(server, own, { guest_uses: "own" })).status).toBe(409);
  const again = await settle(server, own);
  expect([again.status, again.json]).toMatchObject([202, { volume: own, replaced_by: "" }]);
  expect(openTask(server)?.work).toMatchObject({ value: { kind: "reconnect-volume-unconfirmed" } });
  await finish(server, "succeed");
  expect([(await show(server)).status, await marks(server)]).toEqual(["VERIFY_RESIZE", [[own, ""]]]);
});
