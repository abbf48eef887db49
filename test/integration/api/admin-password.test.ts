import { randomUUID } from "node:crypto";
import { afterEach, expect, test } from "vitest";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
afterEach(() => rig.close());

const NEW = { name: "web", flavorRef: "1" };
const create = (fields: object = {}) => rig.post("/v2.1/servers", { server: { ...NEW, ...fields } });
const act = (id: string, body: object, minor = 1) =>
  rig.post(`/v2.1/servers/${id}/action`, body, { "openstack-api-version": `compute 2.${minor}` });

test("the answer to create has the password of the call, or a random one, and nothing stores it", async () => {
  rig = await ApiRig.start();
  const random = new Set<string>();
  for (let calls = 0; calls < 20; calls += 1) {
    const { adminPass } = (await create()).json().server;
    expect(adminPass).toMatch(/^(?=.*[2-9])(?=.*[A-Z])(?=.*[a-z])[2-9A-HJ-NP-Za-km-z]{12}$/);
    random.add(adminPass);
  }
  expect(random.size).toBe(20);
  const given = await create({ adminPass: "my secret" });
  const { id, adminPass } = given.json().server;
  expect(adminPass).toBe("my secret");
  const [record] = await rig.store.requests([id]);
  expect(JSON.stringify(record?.spec)).not.toContain("my secret");
  expect((await create({ adminPass: 5 })).statusCode).toBe(400);
  expect((await create({ return_reservation_id: true, adminPass: "x" })).json()).toEqual({
    reservation_id: expect.any(String),
  });
});

test("rebuild and evacuate answer with the password that they are given, or with a random one", async () => {
  rig = await ApiRig.start({ evacuateUnfenced: true });
  const id = await rig.bootActive("north", 0);
  const rebuilt = await act(id, { rebuild: { imageRef: randomUUID(), adminPass: "p".repeat(300) } });
  expect([rebuilt.statusCode, rebuilt.json().server?.adminPass]).toEqual([202, "p".repeat(300)]);
  const other = await rig.bootActive("south", 3);
  const random = await act(other, { rebuild: { imageRef: randomUUID() } });
  expect(random.json().server.adminPass).toHaveLength(12);
  const third = await rig.bootActive("south", 3);
  const untaken = await act(third, { rebuild: { imageRef: randomUUID(), adminPass: 123456789 } });
  expect([untaken.statusCode, untaken.body.includes("123456789")]).toEqual([400, false]);
  await rig.cell("south").store.expireAgents(0);
  const evacuated = await act(third, { evacuate: { onSharedStorage: false, adminPass: "moved" } });
  expect([evacuated.statusCode, evacuated.json()]).toEqual([200, { adminPass: "moved" }]);
});

test("without instance passwords, no answer has one", async () => {
  rig = await ApiRig.start({ instancePasswords: false });
  expect((await create({ adminPass: "my secret" })).json().server).not.toHaveProperty("adminPass");
  const id = await rig.bootActive("north", 0);
  const rebuilt = await act(id, { rebuild: { imageRef: randomUUID() } });
  expect([rebuilt.statusCode, "adminPass" in rebuilt.json().server]).toEqual([202, false]);
});
