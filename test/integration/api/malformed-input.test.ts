import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PostgresApiStore } from "../../../adapters/postgres/api/postgres-api-store.ts";
import { createPool } from "../../../adapters/postgres/client/pool.ts";
import { freshDatabase, type TestDatabase } from "../../rigs/databases.ts";
import fc from "../../rigs/property.ts";
import { ApiRig } from "./api-rig.ts";

let rig: ApiRig;
let database: TestDatabase;
let store: PostgresApiStore;
// The tests use Postgres, since it refuses texts that the in-memory twin accepts.
beforeAll(async () => {
  database = await freshDatabase("api");
  store = new PostgresApiStore(createPool({ url: database.url, applicationName: "malformed input test" }));
  rig = await ApiRig.start({}, store);
});
afterAll(async () => {
  await rig.close();
  await store.close();
  await database.drop();
});

const text = fc.oneof(
  fc.string({ unit: "binary" }),
  fc.constantFrom("", "\u0000", "\ud800", "1", "x".repeat(300), "__proto__", "constructor"),
);
const anything = fc.oneof(fc.jsonValue(), text, fc.integer(), fc.constant(null));
const fields = [
  "name",
  "flavorRef",
  "imageRef",
  "metadata",
  "availability_zone",
  "networks",
  "min_count",
  "max_count",
  "return_reservation_id",
  "security_groups",
  "user_data",
  "tags",
  "config_drive",
  "OS-DCF:diskConfig",
  "block_device_mapping_v2",
  "colour",
];
/** A server's body that is valid except for some fields. */
const server = fc
  .dictionary(fc.constantFrom(...fields), anything, { maxKeys: 4 })
  .map((wrong) => ({ server: { name: "web", flavorRef: "1", ...wrong } }));
const flavor = fc
  .dictionary(
    fc.constantFrom(
      "name",
      "id",
      "ram",
      "vcpus",
      "disk",
      "swap",
      "rxtx_factor",
      "os-flavor-access:is_public",
      "description",
    ),
    anything,
    { maxKeys: 3 },
  )
  .map((wrong) => ({ flavor: { name: "n", ram: 1, vcpus: 1, disk: 0, ...wrong } }));
const extraSpecs = fc
  .dictionary(
    fc.oneof(text, fc.constantFrom("resources:VCPU", "resources1:VGPU", "trait:X", "group_policy")),
    anything,
    { maxKeys: 4 },
  )
  .map((specs) => ({ extra_specs: specs }));
const version = fc.constantFrom("compute 2.1", "compute 2.37", "compute latest");

function isAnswered(status: number, body: string): void {
  expect(status, body).toBeLessThan(500);
  if (status >= 400)
    expect(Object.values(JSON.parse(body))[0]).toMatchObject({ code: status, message: expect.any(String) });
}

describe("malformed input", () => {
  it.each([
    ["project_id=a%00b&all_tenants=1", "project_id"],
    ["name=%00", "name"],
    ["user_id=u%00&user_id=u", "user_id"],
    ["marker=%00", "marker"],
  ])("refuses U+0000 in the query %s with 400, before it reaches the database", async (query, named) => {
    const answer = await rig.get(`/v2.1/servers/detail?${query}`);
    expect(answer.statusCode, answer.body).toBe(400);
    expect(answer.json().badRequest.message).toContain(`query parameters ${named}`);
  });

  it("refuses U+0000 in the id of a flavor, a server or a hypervisor with 400, and names the id", async () => {
    const boot = await rig.post("/v2.1/servers", { server: { name: "web", flavorRef: "1\u0000" } });
    expect(boot.statusCode, boot.body).toBe(400);
    expect(boot.json().badRequest.message).toContain("flavorRef");
    for (const path of ["flavors/1%00", "servers/%00", "servers/%00/os-instance-actions", "os-hypervisors/%00"])
      expect((await rig.get(`/v2.1/${path}`)).json().badRequest.message, path).toMatch(/field\/attribute id\. .*NUL/);
    expect((await rig.call({ method: "DELETE", url: "/v2.1/flavors/1%00" })).statusCode).toBe(400);
  });

  it("never gets a 5xx for any body", () =>
    fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.tuple(fc.constant("/v2.1/servers"), fc.oneof(server, anything)),
          fc.tuple(fc.constant("/v2.1/flavors"), fc.oneof(flavor, anything)),
          fc.tuple(fc.constant("/v2.1/flavors/1/os-extra_specs"), fc.oneof(extraSpecs, anything)),
        ),
        version,
        async ([url, body], microversion) => {
          const answer = await rig.post(url, body, { "openstack-api-version": microversion });
          isAnswered(answer.statusCode, answer.body);
        },
      ),
      { numRuns: 1500 },
    ));

  it("never gets a 5xx for bytes that are not JSON", () =>
    fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 200 }), async (bytes) => {
        const answer = await rig.call({
          method: "POST",
          url: "/v2.1/servers",
          headers: { "content-type": "application/json" },
          payload: Buffer.from(bytes),
        });
        isAnswered(answer.statusCode, answer.body);
      }),
      { numRuns: 300 },
    ));

  it("never gets a 5xx for any path or query", () =>
    fc.assert(
      fc.asyncProperty(
        fc.constantFrom(
          "/v2.1/servers/",
          "/v2.1/flavors/",
          "/v2.1/os-hypervisors/",
          "/v2.1/servers/x/os-instance-actions/",
          "/v2.1/flavors/1/os-extra_specs/",
        ),
        fc.oneof(
          fc.string(),
          fc.string({ unit: "binary" }).map((raw) => encodeURIComponent(raw.toWellFormed())),
        ),
        fc.array(
          fc.tuple(
            fc.constantFrom(
              "limit",
              "marker",
              "status",
              "name",
              "changes-since",
              "all_tenants",
              "sort_key",
              "uuid",
              "x",
            ),
            fc.string(),
          ),
          { maxLength: 3 },
        ),
        fc.constantFrom("GET", "DELETE"),
        async (path, tail, query, method) => {
          const url = `${path}${tail.replaceAll(/[?#\s]/g, "")}?${new URLSearchParams(query)}`;
          const answer = await rig.call({ method: method as "GET", url });
          isAnswered(answer.statusCode, answer.body);
          const list = await rig.get(`/v2.1/servers/detail?${new URLSearchParams(query)}`);
          isAnswered(list.statusCode, list.body);
        },
      ),
      { numRuns: 600, examples: [["/v2.1/flavors/", "", [], "GET"]] },
    ));
});
