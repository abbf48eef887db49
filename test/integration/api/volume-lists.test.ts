import { afterEach, beforeEach, expect, test } from "vitest";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
beforeEach(async () => {
  rig = await ApiRig.start({ auth: "noauth2", volumes: "simple" });
});
afterEach(() => rig.close());

const call = async (method: "GET" | "POST" | "PUT", path: string, body?: object) => {
  const headers = { "x-auth-token": "admin:p", ...(body && { "content-type": "application/json" }) };
  const url = `/volume/v3/volumes${path}`;
  const answer = await rig.call({ method, url, headers, ...(body && { payload: JSON.stringify(body) }) });
  return { status: answer.statusCode, json: answer.json() };
};
const create = async (name: string): Promise<string> =>
  (await call("POST", "", { volume: { size: 1, name } })).json.volume.id;
const namesOf = async (query: string) =>
  (await call("GET", `?${query}`)).json.volumes.map((volume: { name: string }) => volume.name);

test("a list has the newest volume first, and is filtered by the name under either of its parameters", async () => {
  await create("old");
  await create("new");
  for (const query of ["", "sort=created_at", "sort=created_at:desc", "sort_key=created_at&sort_dir=desc"])
    expect(await namesOf(query)).toEqual(["new", "old"]);
  expect(await namesOf("name=old")).toEqual(["old"]);
  expect(await namesOf("display_name=old")).toEqual(["old"]);
});

test.each(["metadata=%7B%27a%27%3A%271%27%7D", "bootable=true", "user_id=u", "created_at=gt:2026-01-01"])(
  "a filter that the list does not have is refused by its name: %s",
  async (query) => {
    await create("one");
    const { status, json } = await call("GET", `/detail?${query}`);
    expect(status).toBe(400);
    const name = query.replace(/=.*/, "");
    expect(json.badRequest.message).toMatch(
      `Invalid filters ${name} are found in query options. Allowed are: all_tenants,`,
    );
  },
);

test.each(["sort=name:asc", "sort=created_at:asc", "sort_key=size", "sort_dir=asc"])(
  "an order that the list does not have is refused: %s",
  async (query) => {
    const { status, json } = await call("GET", `?${query}`);
    expect([status, json.badRequest.message]).toEqual([400, expect.stringMatching("sort=created_at:desc")]);
  },
);

test("one item of the metadata is written under the key of the URL alone", async () => {
  const id = await create("one");
  expect((await call("PUT", `/${id}/metadata/a`, { meta: { a: "1" } })).status).toBe(200);
  const [both, other] = [
    await call("PUT", `/${id}/metadata/a%2Cb`, { meta: { a: "2", b: "2" } }),
    await call("PUT", `/${id}/metadata/a`, { meta: { b: "2" } }),
  ];
  expect([both.status, other.status]).toEqual([400, 400]);
  expect((await call("GET", `/${id}/metadata`)).json).toEqual({ metadata: { a: "1" } });
});
