import type { ServerStatus } from "../core/tasks/server.ts";
import type { ChangingUser } from "./server-changes.ts";

/** The statuses in which volumes and interfaces of a server can be changed. */
const CHANGEABLE: readonly ServerStatus[] = ["ACTIVE", "PAUSED", "SHUTOFF"];

/** A server in one of these statuses without an operation, or undefined if there is none. Draws one random number. */
export function freeServer(
  user: Pick<ChangingUser, "look" | "servers">,
  random: () => number,
  statuses: readonly ServerStatus[] = CHANGEABLE,
): string | undefined {
  const free = user.servers().filter((uuid) => {
    const server = user.look(uuid);
    return server !== null && server.taskState === null && statuses.includes(server.status);
  });
  return free[Math.floor(random() * free.length)];
}
