import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { QUOTA_DEFAULTS } from "../../../services/api/compute/quotas/quota-defaults.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2", quotas: QUOTA_DEFAULTS.nova });
});
afterEach(() => rig.close());

const as = (minor: number) => ({ "x-auth-token": "dora:p", "openstack-api-version": `compute 2.${minor}` });
const MOTD = { path: "/etc/motd", contents: "aGVs\nbG8=" };
const SECRET = { path: "/etc/key", contents: "c2VjcmV0" };
const create = (personality: unknown, minor = 56) =>
  rig.post("/v2.1/servers", { server: { name: "web", flavorRef: "1", networks: "none", personality } }, as(minor));

async function active(personality: unknown): Promise<string> {
  const { id } = (await create(personality)).json().server;
  const task = await rig.dispatch(id, "north", [0]);
  await rig.cell("north").store.commitActive([{ ...(await rig.take("north", task)), selection: 0 }]);
  return id;
}

/** The files of the spec that the rebuild's task carries. */
async function rebuilt(id: string, personality?: unknown, minor = 56) {
  const body = { rebuild: { imageRef: randomUUID(), ...(personality !== undefined && { personality }) } };
  const answer = await rig.post(`/v2.1/servers/${id}/action`, body, as(minor));
  const tasks = await rig.cell("north").store.tasksOf(id);
  return { answer, files: tasks.find(({ task }) => task?.work?.$case === "operate")?.task?.server?.files };
}

describe("files for a guest", () => {
  test("go to the server's host as they were given", async () => {
    const { id } = (await create([MOTD, SECRET])).json().server;
    expect((await rig.dispatch(id, "north", [0])).server?.files).toEqual([MOTD, SECRET]);
  });

  test.each([
    ["is no base64", [SECRET, { path: "/a", contents: "hello" }], 400, /personality\[1\]\.contents.*is not a 'base64'/],
    ["has no path", [{ contents: "" }], 400, /personality/],
    ["has another field", [{ ...MOTD, mode: "0600" }], 400, /'mode' was unexpected/],
    ["is one more than the quota", Array(6).fill(MOTD), 403, /^Personality file limit exceeded$/],
    ["has a long path", [{ ...MOTD, path: `/${"x".repeat(255)}` }], 403, /^Personality file path exceeds maximum 255$/],
    [
      ...["is large", [{ path: "/a", contents: Buffer.alloc(10_241).toString("base64") }], 403],
      /^Personality file content exceeds maximum 10240$/,
    ],
  ] as const)("are refused when one %s, and no server is made", async (_title, personality, status, message) => {
    const refused = await create(personality);
    const [fault] = Object.values(refused.json()) as [{ message: string }];
    expect([refused.statusCode, fault.message]).toEqual([status, expect.stringMatching(message)]);
    expect(refused.body).not.toContain(SECRET.contents);
    expect((await rig.get("/v2.1/servers", as(56))).json().servers).toEqual([]);
  });

  test("are refused from 2.57 on", async () => {
    expect((await create([MOTD], 57)).json().badRequest.message).toBe(
      "Additional properties are not allowed ('personality' was unexpected)",
    );
    expect((await create([], 56)).statusCode).toBe(202);
  });

  test("are replaced by those of a rebuild", async () => {
    expect((await rebuilt(await active([SECRET]), [MOTD])).files).toEqual([MOTD]);
  });

  test.each([56, 57])("are removed by a rebuild without files at 2.%i", async (minor) => {
    expect((await rebuilt(await active([SECRET]), undefined, minor)).files).toEqual([]);
  });

  test("of a rebuild are checked as those of a new server", async () => {
    const id = await active([]);
    for (const [personality, status] of [
      [Array(6).fill(MOTD), 403],
      [[{ path: "/a", contents: "hello" }], 400],
      ["text", 400],
    ] as const)
      expect((await rebuilt(id, personality)).answer.statusCode).toBe(status);
    expect((await rebuilt(id, [MOTD], 57)).answer.statusCode).toBe(400);
  });
});
