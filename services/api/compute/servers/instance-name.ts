import type { Server } from "../../../../core/tasks/server.ts";
import { distinctDigits } from "../../../../runtime/distinct-digits.ts";

/** Returns the name under which a host would know a server's guest, as Nova shows it to admins. */
export function instanceNameOf(serverUuid: string): string {
  return `instance-${distinctDigits(serverUuid)}`;
}

/** Returns the device that a guest boots from, as Nova shows it to admins: null until a host has started the guest. */
export function rootDeviceOf({ launchedAtMs }: Pick<Server, "launchedAtMs">): string | null {
  return launchedAtMs === null ? null : "/dev/vda";
}
