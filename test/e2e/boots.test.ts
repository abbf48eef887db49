import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Cloud } from "./cloud.ts";

describe("a cloud of separate processes", () => {
  let cloud: Cloud;
  let flavor: string;

  beforeAll(async () => {
    cloud = await Cloud.start();
    flavor = await cloud.compute.flavor();
  });
  afterAll(() => cloud?.close());
  beforeEach(() => cloud.beforeTest());

  test("boots, lists, shows and deletes a server", async () => {
    const { compute } = cloud;
    const uuid = await compute.boot({ flavor, name: "first" });
    const server = await compute.endedOne(uuid);
    expect(server).toMatchObject({ id: uuid, name: "first", status: "ACTIVE", "OS-EXT-STS:vm_state": "active" });
    const host = server["OS-EXT-SRV-ATTR:host"];
    expect(host).toMatch(/^cell-[12]-agent-[12]-host-[123]$/);
    expect(await compute.show(uuid)).toMatchObject({ status: "ACTIVE", "OS-EXT-SRV-ATTR:host": host });
    expect(await compute.attempts(uuid)).toEqual([{ host, result: "Success", details: null }]);
    await cloud.expectCleanAudit();

    await compute.delete(uuid);
    await compute.gone([uuid]);
    expect((await compute.list()).map((one) => one.id)).not.toContain(uuid);
    expect((await compute.action(uuid, "delete")).events).toMatchObject([{ result: "Success" }]);
    for (const cell of cloud.cells) expect(await cell.holders(uuid)).toEqual([]);
    await cloud.expectCleanAudit();
  });
});
