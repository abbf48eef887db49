import type { ChangingUser } from "./server-changes.ts";

/** A server whose volumes and interfaces can be changed now, or undefined if there is none. Draws one random number. */
export function freeServer(user: Pick<ChangingUser, "look" | "servers">, random: () => number): string | undefined {
  const free = user.servers().filter((uuid) => {
    const server = user.look(uuid);
    return server !== null && server.taskState === null && ["ACTIVE", "PAUSED", "SHUTOFF"].includes(server.status);
  });
  return free[Math.floor(random() * free.length)];
}
