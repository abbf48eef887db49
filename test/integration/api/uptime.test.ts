import { afterAll, beforeAll, expect, it } from "vitest";
import { ApiRig } from "./api-rig.ts";

const as = (token: string, minor: number) => ({ "x-auth-token": token, "openstack-api-version": `compute 2.${minor}` });

let rig: ApiRig;
beforeAll(async () => {
  rig = await ApiRig.start({ auth: "noauth2" });
});
afterAll(() => rig.close());

it("says that the uptime of a hypervisor is not supported, to admins and up to 2.87", async () => {
  const [first] = (await rig.get("/v2.1/os-hypervisors", as("admin:ops", 87))).json().hypervisors;
  const uptime = (headers: Record<string, string>, id = first.id) =>
    rig.get(`/v2.1/os-hypervisors/${id}/uptime`, headers);
  expect((await uptime(as("admin:ops", 87))).json()).toEqual({
    notImplemented: { code: 501, message: "The requested functionality is not supported." },
  });
  expect((await uptime(as("admin:ops", 87), "11111111-1111-4111-8111-111111111111")).statusCode).toBe(404);
  expect((await uptime(as("admin:ops", 87), "x")).statusCode).toBe(400);
  expect((await uptime(as("admin:ops", 88))).statusCode).toBe(404);
  expect((await uptime(as("ann:p1", 87))).statusCode).toBe(403);
});

it("does not find an aggregate with a negative id, and refuses an id that is no number", async () => {
  const status = async (id: string) => (await rig.get(`/v2.1/os-aggregates/${id}`, as("admin:ops", 96))).statusCode;
  expect([await status("-1"), await status("x")]).toEqual([404, 400]);
});
