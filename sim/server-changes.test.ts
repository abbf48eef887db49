import { expect, test } from "vitest";
import type { Server } from "../core/tasks/server.ts";
import type { ApiCall } from "./call-in-process.ts";
import { type ChangingUser, ServerChanges } from "./server-changes.ts";
import { World } from "./world.ts";

/** The actions that users of a world take whose one server has this status. */
async function actionsOn(status: string, changes?: readonly string[]): Promise<ReadonlySet<string>> {
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
    changes,
  };
  const users = new ServerChanges(new World(1, { wholeHistory: false }), user);
  for (let change = 0; change < 100; change += 1) await users.changeOne(0);
  return new Set(calls.flatMap(({ payload }) => Object.keys(payload ?? {})));
}

test("users move paused servers live, and do with them what the status allows besides", async () => {
  const actions = await actionsOn("PAUSED");
  for (const action of ["os-migrateLive", "unpause", "shelve", "reboot"]) expect(actions).toContain(action);
  expect(await actionsOn("PAUSED", ["unpause"])).toEqual(new Set(["unpause"]));
});
