import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import type { Networking, NeutronPort } from "../../core/stores/networking.ts";

const OWN = { callerToken: null, requestId: null };
const NORMAL = { vnicType: "normal", profile: {} };

/** The guarantees of the bindings of a port to several hosts. No driver connects ports on the host `lonely`. `port` makes one that is bound to `host-1`. */
export function portBindingsContract(
  networking: () => Networking,
  port: () => Promise<Pick<NeutronPort, "id" | "deviceId">>,
): void {
  const bindingsOf = async (id: string) =>
    ((await networking().bindings(id)) ?? [])
      .map(({ host, isActive, vifType }) => `${host} ${isActive ? "active" : "prepared"} ${vifType}`)
      .toSorted();
  const portNow = async (id: string) => (await networking().ports({ id }, OWN))[0];

  test("prepares a binding to another host, which may be found again, while the port stays bound to its host", async () => {
    expect(await networking().hasBindings()).toBe(true);
    const { id } = await port();
    const before = await portNow(id);
    const made = await networking().createBinding(id, {
      host: "host-2",
      vnicType: "normal",
      profile: { key: "value" },
    });
    expect(made).toMatchObject({
      kind: "created",
      binding: { host: "host-2", isActive: false, vifType: "ovs", profile: { key: "value" } },
    });
    expect(await networking().createBinding(id, { host: "host-2", ...NORMAL })).toEqual({ kind: "exists" });
    expect(await bindingsOf(id)).toEqual(["host-1 active ovs", "host-2 prepared ovs"]);
    const after = await portNow(id);
    expect(after).toMatchObject({ host: "host-1", vifType: "ovs" });
    expect(after?.revision).toBeGreaterThan(before?.revision ?? Number.POSITIVE_INFINITY);
  });

  test("makes a prepared binding the active one, also twice, and knows none that is not there", async () => {
    const { id } = await port();
    expect(await networking().activateBinding(id, "host-2")).toBe("missing");
    await networking().createBinding(id, { host: "host-2", ...NORMAL });
    expect(await networking().activateBinding(id, "host-2")).toBe("active");
    expect(await networking().activateBinding(id, "host-2")).toBe("active");
    expect(await portNow(id)).toMatchObject({ host: "host-2", vifType: "ovs" });
    expect(await bindingsOf(id)).toEqual(["host-1 prepared unbound", "host-2 active ovs"]);
    expect(await networking().activateBinding(id, "host-1")).toBe("active");
    expect(await portNow(id)).toMatchObject({ host: "host-1" });
  });

  test("deletes bindings, also twice, and the active one as well", async () => {
    const { id } = await port();
    await networking().createBinding(id, { host: "host-2", ...NORMAL });
    await networking().deleteBinding(id, "host-2");
    await networking().deleteBinding(id, "host-2");
    expect(await bindingsOf(id)).toEqual(["host-1 active ovs"]);
    await networking().deleteBinding(id, "host-1");
    expect(await bindingsOf(id)).toEqual([]);
  });

  /** Changes or deletes a port until Neutron has done so. */
  async function repeatedly(id: string, act: (revision: number) => Promise<string>): Promise<readonly string[]> {
    const outcomes: string[] = [];
    while (outcomes.length < 5 && (outcomes.length === 0 || outcomes.at(-1) === "changed"))
      outcomes.push(await act((await portNow(id))?.revision ?? 0));
    return outcomes;
  }

  test.each([{ prepared: [] }, { prepared: ["host-2"] }, { prepared: ["host-2", "host-3"] }])(
    "binds a port again that has lost its active binding, and had others prepared: $prepared",
    async ({ prepared }) => {
      const { id } = await port();
      for (const host of prepared) await networking().createBinding(id, { host, ...NORMAL });
      await networking().deleteBinding(id, "host-1");
      expect(await portNow(id)).toMatchObject({ host: "" });
      const outcomes = await repeatedly(
        id,
        async (revision) => (await networking().updatePort(id, { host: "host-2" }, revision)).kind,
      );
      expect(outcomes).toEqual(["changed", "updated"]);
      expect(await portNow(id)).toMatchObject({ host: "host-2", vifType: "ovs" });
      expect(await bindingsOf(id)).toEqual(["host-2 active ovs"]);
    },
  );

  test("deletes a port that has lost its active binding, and does not say so before it is gone", async () => {
    const { id } = await port();
    await networking().createBinding(id, { host: "host-2", ...NORMAL });
    await networking().deleteBinding(id, "host-1");
    expect(await repeatedly(id, (revision) => networking().deletePort(id, revision))).toEqual(["changed", "deleted"]);
    expect(await portNow(id)).toBeUndefined();
  });

  test("makes the first binding of a port that has lost its active one the active one", async () => {
    const { id } = await port();
    await networking().deleteBinding(id, "host-1");
    expect(await networking().createBinding(id, { host: "host-2", ...NORMAL })).toMatchObject({
      kind: "created",
      binding: { isActive: true },
    });
    expect(await portNow(id)).toMatchObject({ host: "host-2", vifType: "ovs" });
  });

  test("prepares no binding to a host on which no driver connects the port, and leaves nothing of it", async () => {
    const { id } = await port();
    expect(await networking().createBinding(id, { host: "lonely", ...NORMAL })).toMatchObject({ kind: "refused" });
    expect(await bindingsOf(id)).toEqual(["host-1 active ovs"]);
  });

  test("knows no bindings of a port that is gone", async () => {
    const id = randomUUID();
    expect(await networking().bindings(id)).toBeNull();
    expect(await networking().createBinding(id, { host: "host-2", ...NORMAL })).toEqual({ kind: "gone" });
    expect(await networking().activateBinding(id, "host-2")).toBe("missing");
    await networking().deleteBinding(id, "host-2");
  });

  test("cannot bind a port by an update to a host for which a binding is prepared", async () => {
    const { id } = await port();
    await networking().createBinding(id, { host: "host-2", ...NORMAL });
    const { revision = 0 } = (await portNow(id)) ?? {};
    await expect(networking().updatePort(id, { host: "host-2" }, revision)).rejects.toMatchObject({
      code: "unreachable",
    });
    await networking().deleteBinding(id, "host-2");
    const bound = await networking().updatePort(id, { host: "host-2" }, (await portNow(id))?.revision ?? 0);
    expect(bound).toMatchObject({ kind: "updated", port: { host: "host-2" } });
  });

  test("keeps the profile that a port is bound with", async () => {
    const { id } = await port();
    const { revision = 0 } = (await portNow(id)) ?? {};
    const profile = { allocation: { group: "provider" } };
    expect(await networking().updatePort(id, { host: "host-2", profile }, revision)).toMatchObject({ kind: "updated" });
    expect(await portNow(id)).toMatchObject({ host: "host-2", profile });
  });
}
