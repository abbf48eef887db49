import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ApiRig } from "./api-rig.ts";
import { as } from "./attachment-calls.ts";

const NOWHERE = "00000000-0000-4000-8000-000000000000";

let rig: ApiRig;
let busy: string;
beforeAll(async () => {
  rig = await ApiRig.start({ auth: "noauth2" });
  busy = await rig.bootActive("north", 0, { networks: "none" }, as("admin:p", 96));
  await rig.post(`/v2.1/servers/${busy}/action`, { "os-stop": null }, as("admin:p", 96));
});
afterAll(() => rig.close());

const LIVE = { host: null, block_migration: "auto" };
const BODIES: readonly (readonly [path: string, body: object, minor?: number])[] = [
  ["action", { resize: {} }],
  ["action", { resize: { flavorRef: "1", colour: "red" } }],
  ["action", { resize: { flavorRef: "1", "OS-DCF:diskConfig": "x" } }],
  ["action", { migrate: { colour: "red" } }],
  ["action", { migrate: { host: 1 } }],
  ["action", { "os-migrateLive": {} }],
  ["action", { "os-migrateLive": { ...LIVE, force: true } }, 68],
  ["action", { "os-migrateLive": LIVE }, 24],
  ["action", { evacuate: { colour: "red" } }],
  ["action", { evacuate: null }],
  ["action", { evacuate: {} }, 13],
  ["action", { unshelve: { colour: "red" } }],
  ["action", { unshelve: {} }, 77],
  ["action", { rebuild: {} }],
  ["action", { rebuild: { imageRef: NOWHERE, colour: "red" } }],
  ["action", { rebuild: { imageRef: "x" } }],
  ["action", { trigger_crash_dump: {} }],
  ["migrations/1/action", { force_complete: {} }],
];

describe.each([
  ["unknown", () => NOWHERE],
  ["busy", () => busy],
])("a malformed body is refused before it is seen that the server is %s:", (_what, server) => {
  for (const [path, body, minor = 96] of BODIES)
    test(`${path} ${JSON.stringify(body)} at 2.${minor}`, async () => {
      const answer = await rig.post(`/v2.1/servers/${server()}/${path}`, body, as("admin:p", minor));
      expect([answer.statusCode, answer.json()]).toEqual([400, { badRequest: expect.anything() }]);
    });
});

test("a move before the microversion of its fields ignores them, as in Nova", async () => {
  const ask = (body: object, minor: number) =>
    rig.post(`/v2.1/servers/${busy}/action`, body, as("admin:p", minor)).then(({ statusCode }) => statusCode);
  expect(await ask({ migrate: { host: "x" } }, 55)).toBe(409);
  expect(await ask({ unshelve: { availability_zone: "x" } }, 76)).toBe(409);
});

test("a password for a disk that is there already is refused once the server was found, as in Nova", async () => {
  const evacuate = { onSharedStorage: true, adminPass: "secret" };
  const ask = (server: string) => rig.post(`/v2.1/servers/${server}/action`, { evacuate }, as("admin:p", 13));
  expect((await ask(NOWHERE)).statusCode).toBe(404);
});
