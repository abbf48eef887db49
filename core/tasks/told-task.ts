import type { Task } from "../../proto/gen/berth/cell.ts";

/**
 * Whether the message that announces a stored task carries the whole task, so that a conductor can begin it before it takes it: a build without secrets
 * (such as those in user data, which stay in the databases), and without ports in Neutron and volumes, whose binding and connection must not begin twice.
 * Both sides ask this: a conductor that takes such a task cannot know whether another one has begun it before.
 */
export function isTold({ work, server }: Task): boolean {
  if (work?.$case !== "build" || server === undefined) return false;
  const { userData, files, volumes, ports } = server;
  return (
    userData === "" &&
    files.length === 0 &&
    volumes.length === 0 &&
    ports.every(({ macAddress }) => macAddress === undefined)
  );
}
