import { expect, test } from "vitest";
import type { SpecToken } from "../../core/stores/cell/spec-tokens.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import { deleteTask, dispatchOf, serverId } from "./cell-fixtures.ts";
import { type CellUnderTest, tenureOf } from "./cell-under-test.ts";

/** The servers that are found by words about their specs. */
export function tokenContract(cell: () => CellUnderTest): void {
  test("servers are found by the fields that few servers have, by their launch index and by their addresses", async () => {
    const { store } = cell();
    const port = {
      ...{ portId: "p", networkId: "n", tag: "", networkName: "n".repeat(200), slot: 3 },
      floatingAddresses: [{ address: "198.51.100.9", fixedAddress: "10.0.0.9" }],
    };
    const usual = { imageProperties: { os_type: "linux" }, ports: [], configDrive: false, launchIndex: 0 };
    const specs: readonly Partial<ServerSpec>[] = [
      {},
      { hostname: "web", description: "", publicKey: "k".repeat(400), configDrive: true },
      { accessIpV4: "10.0.0.1", accessIpV6: "fd00::1", manualDisk: true, launchIndex: 300 },
      { imageProperties: { a: "b", kernel_id: "k", ramdisk_id: "r" }, userData: "x".repeat(70_000), launchIndex: 3 },
      { imageProperties: { id: "kernel_id" }, description: "x".repeat(255), name: "y".repeat(255) },
      { ports: [port, { ...port, addresses: ["10.0.0.7", "fd00::7"] }].map((one) => ({ addresses: [], ...one })) },
      { ports: [{ ...port, addresses: ["10.0.0.70"] }], hostname: "gone" },
      { name: "same", description: "same", metadata: { "\u00e2\u0001": "\u00a2\u0001\u0004same" } },
      { name: "same", description: "same" },
      { name: "same", description: "not the same", projectId: "other" },
      { name: "", description: "" },
      { name: "", description: "x" },
      { name: "z".repeat(200), description: "z".repeat(200) },
      { name: "none", metadata: { "\u00a2\u0001": "\u00a2\u0001\u0004none" } },
    ];
    for (const [at, spec] of specs.entries())
      expect(
        await store.dispatch([
          dispatchOf({ server: at + 1, task: at + 1, hosts: [at % 3], spec: { ...usual, ...spec } }),
        ]),
      ).toMatchObject([{ kind: "dispatched" }]);
    await store.requestDelete([deleteTask(7, 17)]);
    const all = (tokens: readonly SpecToken[]) => ({ tokens, projectId: null, looksMax: 9 });
    const by = async (...tokens: readonly SpecToken[]) =>
      (await store.serversByTokens(all(tokens)))?.map(({ uuid }) => uuid).toSorted();
    const found = {
      hostname: [2, 7],
      description: [2, 5, 10, 12],
      config_drive: [2],
      access_ip_v4: [3],
      access_ip_v6: [3],
      manual_disk: [3],
      "launch_index=300": [3],
      "launch_index=3": [4],
      "launch_index=0": [],
      kernel_id: [4],
      ramdisk_id: [4],
      ip6: [6],
      "ip=10.0.0.7": [6],
      "ip=fd00::7": [6],
      "ip=10.0.0.70": [7],
      "ip=10.0.0.9": [],
    } as const;
    for (const [token, servers] of Object.entries(found))
      expect([token, await by(token as SpecToken)]).toEqual([token, servers.map(serverId)]);
    expect(await by("ip6", "manual_disk", "kernel_id")).toEqual([3, 4, 6].map(serverId));
    const several = all(["hostname", "description"]);
    expect(await store.serversByTokens({ ...several, looksMax: 5 })).toHaveLength(5);
    expect(await store.serversByTokens({ ...several, looksMax: 4 })).toBeNull();
    expect(await store.serversByTokens({ ...several, projectId: "other" })).toEqual([
      { uuid: serverId(10), createdAtMs: expect.any(Number) },
    ]);
    expect(await store.serversByTokens({ ...several, projectId: "other", looksMax: 4 })).toBeNull();
    expect(await store.serversByTokens({ ...several, projectId: "nobody" })).toEqual([]);
    const [second] = await store.servers([serverId(2)]);
    expect(await store.serversByTokens(all(["config_drive"]))).toEqual([
      { uuid: serverId(2), createdAtMs: second?.createdAtMs },
    ]);
    await store.commitDeleted([tenureOf(await cell().take(17, 0))]);
    expect(await by("hostname")).toEqual([serverId(2)]);
  });
}
