import { afterAll, beforeAll, expect, test } from "vitest";
import { ApiRig } from "./api-rig.ts";
import { as } from "./attachment-calls.ts";

let rig: ApiRig;
beforeAll(async () => {
  rig = await ApiRig.start({ auth: "noauth2" });
});
afterAll(() => rig.close());

const hypervisor = async (): Promise<string> =>
  (await rig.get("/v2.1/os-hypervisors", as("admin:p", 53))).json().hypervisors[0].id;

test.each<[path: string, first: number, before: readonly number[], after: readonly number[]]>([
  ["/os-migrations", 59, [1, 58], [59, 74, 75]],
  ["/os-hypervisors", 53, [1, 52], [53, 74, 75]],
  ["/os-hypervisors/detail", 53, [1, 52], [53, 74, 75]],
  ["/os-hypervisors/ID", 53, [], [53, 74, 75]],
  ["/flavors", 75, [1, 74], [75]],
])("GET %s refuses unknown parameters from 2.%i on, as in Nova", async (path, _first, before, after) => {
  const url = `/v2.1${path.replace("ID", await hypervisor())}?colour=red`;
  const ask = async (minor: number) => [minor, (await rig.get(url, as("admin:p", minor))).statusCode];
  for (const minor of before) expect(await ask(minor)).toEqual([minor, 200]);
  for (const minor of after) expect(await ask(minor)).toEqual([minor, 400]);
});
