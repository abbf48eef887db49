import type { AuthKind } from "../../services/api/identity/auth-kind.ts";

const USUAL_API = "http://127.0.0.1:8774";

/** The token that the command needs. With Keystone, `berth dev` has no login itself, so it boots no machine. */
const TOKEN: Readonly<Record<AuthKind, string>> = {
  none: "",
  noauth2: "BERTH_TOKEN=admin ",
  keystone: "BERTH_TOKEN=TOKEN ",
  password: "BERTH_TOKEN=$(openstack token issue -f value -c id) ",
};

/** The command that opens a server's console in this cloud, as one types it. */
export function consoleWords(serverId: string, { apiUrl, auth }: { readonly apiUrl: string; readonly auth: AuthKind }) {
  const api = apiUrl === USUAL_API ? "" : ` --api ${apiUrl}`;
  const login = auth === "password" ? ", after the export below" : "";
  return `${TOKEN[auth]}npx berth console ${serverId}${api}    # Ctrl-] ends it${login}`;
}
