import { SettingsError } from "../../runtime/settings.ts";
import { readUuidLike } from "../../services/api/placement/uuids.ts";

/** Returns the UUID that a command was given. Throws a `SettingsError` for anything else, as a server's name, which several may have. */
export function requireServerUuid(given: string): string {
  if (readUuidLike(given) !== null) return given;
  const short = /^[0-9a-f]{8}$/i.test(given)
    ? "it may be a part of one: `berth top` shows whole ones in a terminal of 120 columns, and `berth top --once | cat` in any; "
    : "";
  throw new SettingsError(
    `${JSON.stringify(given)} is not the UUID of a server; ${short}\`openstack server list --all-projects\` shows them beside the names`,
  );
}
