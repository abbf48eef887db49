import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ApiRig } from "./api-rig.ts";
import { as, attachmentCalls } from "./attachment-calls.ts";

// Clients decide by the status of a refusal, so of several reasons for one, Nova's first reason is the one that is given.

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2", volumes: "simple", networks: "simple" });
});
afterEach(() => rig.close());

const { call, active, attached, attach, detach, newVolume, north } = attachmentCalls(() => rig);

const NOWHERE = "00000000-0000-4000-8000-000000000000";
const refusal = async (answer: ReturnType<typeof call>): Promise<readonly unknown[]> => {
  const { status, json } = await answer;
  const [fault] = Object.values<{ message: string }>(json);
  return [status, fault?.message];
};
const inState = async (status: "ERROR"): Promise<string> => {
  const server = await active();
  await north().resetStatus([{ serverUuid: server, status }]);
  return server;
};

test("a live migration is looked for only if its server moves live", async () => {
  const server = await active();
  const migration = `/v2.1/servers/${server}/migrations/9`;
  const abort = () => refusal(call("DELETE", migration));
  const force = () => refusal(call("POST", `${migration}/action`, { force_complete: null }));
  const why = (action: string) => `Instance ${server} is in an invalid state for '${action}': it does not move live.`;
  expect(await abort()).toEqual([409, why("abort live migration")]);
  expect(await force()).toEqual([409, why("force_complete")]);
  const act = (body: object) => call("POST", `/v2.1/servers/${server}/action`, body);
  expect((await act({ "os-migrateLive": { host: null, block_migration: "auto" } })).status).toBe(202);
  // The cell does not know of the move yet, and other operations are refused with the task state that the server shows.
  for (const body of [{ "os-stop": null }, { migrate: null }])
    expect(await refusal(act(body))).toEqual([409, expect.stringContaining("while it is in task_state migrating")]);
  const unknown = `Migration 9 for server ${server} not found.`;
  expect([await abort(), await force()]).toEqual([
    [404, unknown],
    [400, unknown],
  ]);
});

test("a live migration of a server that is locked, has another operation under way, or whose status does not allow it is not looked for", async () => {
  const [stopped, failed] = [await active(), await inState("ERROR")];
  const path = (server: string) => `/v2.1/servers/${server}/migrations/9`;
  await call("POST", `/v2.1/servers/${stopped}/action`, { "os-stop": null });
  expect(await refusal(call("DELETE", path(stopped)))).toEqual([
    409,
    `Cannot 'abort live migration' instance ${stopped} while it is in task_state powering-off`,
  ]);
  expect(await refusal(call("POST", `${path(failed)}/action`, { force_complete: null }))).toEqual([
    409,
    `Cannot 'force_complete' instance ${failed} while it is in vm_state error`,
  ]);
  expect((await call("DELETE", path(NOWHERE))).status).toBe(404);
});

test("a port or network is looked for only if the server's status allows interfaces to change", async () => {
  const server = await inState("ERROR");
  const path = `/v2.1/servers/${server}/os-interface`;
  const why = (action: string) => `Cannot '${action}' instance ${server} while it is in vm_state error`;
  for (const asked of [{ port_id: NOWHERE }, { net_id: NOWHERE }])
    expect(await refusal(call("POST", path, { interfaceAttachment: asked }))).toEqual([409, why("attach_interface")]);
  expect(await refusal(call("DELETE", `${path}/${NOWHERE}`))).toEqual([409, why("detach_interface")]);
});

test("a volume to detach is looked for before the server's status, lock and operation", async () => {
  const [server, volume] = [await active(), await newVolume()];
  await attached(server, volume);
  const other = await newVolume();
  await north().resetStatus([{ serverUuid: server, status: "ERROR" }]);
  const absent = randomUUID();
  expect(await refusal(detach(server, absent))).toEqual([404, `Volume ${absent} could not be found.`]);
  expect(await refusal(detach(server, other))).toEqual([404, `Instance ${server} is not attached to volume ${other}`]);
  expect(await refusal(detach(server, volume))).toEqual([
    409,
    `Cannot 'detach_volume' instance ${server} while it is in vm_state error`,
  ]);
  // Attaching asks for the status first.
  expect((await attach(server, absent)).status).toBe(409);

  const own = await rig.bootActive("north", 1, { networks: "none" }, as("bob:q"));
  await call("POST", `/v2.1/servers/${own}/action`, { lock: null }, "bob:q");
  const path = (id: string) => `/v2.1/servers/${own}/os-volume_attachments/${id}`;
  expect((await call("DELETE", path(absent), undefined, "bob:q")).status).toBe(404);
  expect(await refusal(call("DELETE", path(other), undefined, "bob:q"))).toEqual([
    404,
    `Volume ${other} could not be found.`,
  ]);
});
