import { randomUUID } from "node:crypto";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DEFAULT_API_SETTINGS } from "../../../services/api/settings.ts";
import { ApiRig } from "./api-rig.ts";

const SERVER = { name: "web", flavorRef: "1" };

describe("servers with more data than can be stored", () => {
  let rig: ApiRig;
  beforeEach(async () => {
    rig = await ApiRig.start({ flavorCacheMs: 0 });
  });
  afterEach(() => rig.close());

  const create = (body: unknown) => rig.post("/v2.1/servers", body);
  const message = (answer: { json(): { badRequest?: { message: string } } }) => answer.json().badRequest?.message;

  it.each([240_000, 300_000, 1_000_000])("refuses a body of %i bytes of hints with the limit", async (bytes) => {
    const answer = await create({ server: SERVER, "os:scheduler_hints": { mine: ["x".repeat(bytes)] } });
    expect(answer.statusCode).toBe(413);
    expect(answer.json().overLimit.message).toContain("at most 114688 bytes");
    expect(rig.toldSchedulers).toEqual([]);
  });

  it("refuses hints that are small in the call and large in the database", async () => {
    // A number takes 5 bytes in the body and 22 in the spec.
    const numbers = `[[${Array.from({ length: 20_000 }, () => "1e20").join(",")}]]`;
    const payload = `{"server":${JSON.stringify(SERVER)},"os:scheduler_hints":{"mine":${numbers}}}`;
    expect(payload.length).toBeLessThan(114_688);
    const headers = { "content-type": "application/json" };
    const answer = await rig.call({ method: "POST", url: "/v2.1/servers", headers, payload });
    expect(answer.statusCode).toBe(400);
    expect(message(answer)).toMatch(
      /^Invalid input for field\/attribute os:scheduler_hints\. Value: 1 hints\. It takes 4\d{5} bytes .* at most 16384 are allowed\. Leave some hints out/,
    );
  });

  it("accepts hints of exactly the allowed size, and refuses one byte more", async () => {
    const ofSize = (bytes: number) => ({ server: SERVER, "os:scheduler_hints": { mine: "x".repeat(bytes) } });
    // The bytes of the name and of the tags and lengths of both fields.
    const around = 9;
    expect((await create(ofSize(16_384 - around))).statusCode).toBe(202);
    expect((await create(ofSize(16_384 - around + 1))).statusCode).toBe(400);
  });

  it("refuses images whose properties are too large in total, at registration and at changes", async () => {
    const property = "x".repeat(1_024);
    const many = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, property]));
    const refused = await rig.post("/image/v2/images", { name: "large", ...many(70) });
    expect(message(refused)).toMatch(
      /field\/attribute properties\. Value: 70 properties\. It takes \d+ bytes .* at most 65536/,
    );
    const image = await rig.post("/image/v2/images", { name: "small", ...many(60) });
    expect(image.statusCode).toBe(201);
    const patch = Object.entries(many(70))
      .slice(60)
      .map(([name, value]) => ({ op: "add", path: `/${name}`, value }));
    const changed = await rig.call({
      method: "PATCH",
      url: `/image/v2/images/${image.json().id}`,
      headers: { "content-type": "application/openstack-images-v2.1-json-patch" },
      payload: JSON.stringify(patch),
    });
    expect(changed.statusCode).toBe(400);
  });

  it("refuses a server whose parts are allowed and whose sum is not, and names the largest part", async () => {
    const specs = (round: number) =>
      Object.fromEntries(Array.from({ length: 200 }, (_, index) => [`x:${round}:${index}`, "é".repeat(200)]));
    for (const round of [1, 2, 3, 4]) {
      const added = await rig.post("/v2.1/flavors/1/os-extra_specs", { extra_specs: specs(round) });
      expect(added.statusCode).toBe(200);
    }
    const answer = await create({ server: SERVER });
    expect(answer.statusCode).toBe(400);
    expect(message(answer)).toMatch(
      /field\/attribute server\. .* at most 262144 are allowed\. The extra specs of the flavor take most of it/,
    );
  });
});

describe("more servers than may wait to be placed", () => {
  it("are refused with Nova's quota message until some are placed, and their ports stay free", async () => {
    const rig = await ApiRig.start({ intake: { ...DEFAULT_API_SETTINGS.intake, openRequestsMax: 2 } });
    try {
      const port = await rig.post("/network/v2.0/ports", { port: { network_id: randomUUID() } });
      const portId: string = port.json().port.id;
      const first = await rig.post("/v2.1/servers", { server: { ...SERVER, max_count: 2 } });
      expect(first.statusCode).toBe(202);
      const refused = await rig.post("/v2.1/servers", { server: { ...SERVER, networks: [{ port: portId }] } });
      expect(refused.statusCode).toBe(403);
      expect(refused.json().forbidden.message).toMatch(
        /^Quota exceeded for open requests: Requested 1, but already used 2 of 2 open requests\. They wait to be placed; try again/,
      );
      expect((await rig.get(`/network/v2.0/ports/${portId}`)).json().port.device_id).toBe("");
      await rig.delete(`/v2.1/servers/${first.json().server.id}`);
      const again = await rig.post("/v2.1/servers", { server: { ...SERVER, networks: [{ port: portId }] } });
      expect(again.statusCode).toBe(202);
    } finally {
      await rig.close();
    }
  });
});
