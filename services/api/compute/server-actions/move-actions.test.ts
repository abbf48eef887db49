import { expect, test } from "vitest";
import { Flavor, ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { KnownCall } from "../../http/call.ts";
import { ActionBody } from "./action-body.ts";
import type { ActionTarget } from "./action-target.ts";
import { type MoveChecks, readResize } from "./move-actions.ts";

/** Reads a resize from a flavor to another one that has no disk; returns "accepted", or the status with which it is refused. */
async function resizeToNoDisk(by: "admin" | "user", from: { readonly diskGib: number; readonly fromVolume?: boolean }) {
  const flavorOf = (id: string, diskGib: number) => Flavor.fromPartial({ id, vcpus: 1, memoryMib: 64, diskGib });
  const spec = ServerSpec.fromPartial({
    flavor: flavorOf("old", from.diskGib),
    volumes: from.fromVolume === true ? [{ isRoot: true }] : [],
  });
  const flavors = { find: async () => ({ flavor: flavorOf("new", 0), problem: null }) };
  const call = { identity: { isAdmin: by === "admin", projectId: "p" }, policy: null } as unknown as KnownCall;
  try {
    const read = readResize(
      { flavors, resizeToSameHost: false } as unknown as MoveChecks,
      { server: { spec } } as unknown as ActionTarget,
      new ActionBody("resize", { flavorRef: "new" }),
      call,
    );
    expect(await read).toMatchObject({ kind: "resize", flavor: { id: "new" } });
    return "accepted";
  } catch (error) {
    return (error as { readonly status?: number }).status;
  }
}

test("only a volume-backed server is resized from a disk to a flavor without one", async () => {
  expect(await resizeToNoDisk("admin", { diskGib: 1 })).toBe(400);
  expect(await resizeToNoDisk("user", { diskGib: 1, fromVolume: true })).toBe("accepted");
});

test("only an admin resizes a server with a local disk between flavors without a size of the disk", async () => {
  expect(await resizeToNoDisk("user", { diskGib: 0 })).toBe(403);
  expect(await resizeToNoDisk("admin", { diskGib: 0 })).toBe("accepted");
  expect(await resizeToNoDisk("user", { diskGib: 0, fromVolume: true })).toBe("accepted");
});
