import { expect, test } from "vitest";
import type { Server } from "../core/tasks/server.ts";
import type { ApiCall } from "./call-in-process.ts";
import { type ChangingUser, ServerChanges } from "./server-changes.ts";
import { World } from "./world.ts";

/** The actions that users of a world take whose one server has this status, and what they want it to be by these. */
async function changesOf(
  status: string,
  { changes, offloadsAtOnce = false }: Partial<Pick<ChangingUser, "changes" | "offloadsAtOnce">> = {},
): Promise<{ readonly actions: ReadonlySet<string>; readonly wanted: ReadonlySet<string> }> {
  const calls: ApiCall[] = [];
  const server = { status, taskState: null, spec: { flavor: { id: "1" } } } as unknown as Server;
  const user: ChangingUser = {
    call: async (call) => {
      calls.push(call);
      return { status: 409, body: "" };
    },
    look: () => server,
    servers: () => ["server"],
    deletes: async () => undefined,
    darkHosts: () => [],
    fence: () => undefined,
    isOver: () => false,
    keepsDeleted: false,
    offloadsAtOnce,
    changes,
  };
  const world = new World(1, { wholeHistory: false });
  const wanted = new Set<string>();
  world.onUnwanted = (_server, what) => wanted.add(what);
  const users = new ServerChanges(world, user);
  for (let change = 0; change < 100; change += 1) await users.changeOne(0);
  return { actions: new Set(calls.flatMap(({ payload }) => Object.keys(payload ?? {}))), wanted };
}

test("users move paused servers live, and do with them what the status allows besides", async () => {
  const { actions } = await changesOf("PAUSED");
  for (const action of ["os-migrateLive", "unpause", "shelve", "reboot"]) expect(actions).toContain(action);
  expect((await changesOf("PAUSED", { changes: ["unpause"] })).actions).toEqual(new Set(["unpause"]));
});

test("a server that users shelve is to be gone where it is offloaded at once, and only stopped elsewhere", async () => {
  const changes = ["shelve"];
  expect((await changesOf("ACTIVE", { changes })).wanted).toEqual(new Set(["stopped"]));
  expect((await changesOf("ACTIVE", { changes, offloadsAtOnce: true })).wanted).toEqual(new Set(["gone"]));
});
