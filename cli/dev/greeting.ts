import { relative } from "node:path";
import type { AuthKind } from "../../services/api/identity/auth-kind.ts";

/** The header that callers have to send, for each kind of authentication. */
const TOKEN_OPTION: Readonly<Record<AuthKind, string>> = {
  none: "",
  noauth2: " -H 'x-auth-token: admin'",
  keystone: " -H 'x-auth-token: TOKEN'",
  password: ' -H "x-auth-token: $TOKEN"',
};

export interface Greeted {
  readonly apiUrl: string;
  readonly auth: AuthKind;
  readonly hosts: number;
  readonly cells: number;
  /** The clients' configuration, or null when there is none. */
  readonly cloudsFile: string | null;
  /** The file of an image that can be uploaded, in a cloud that stores data of images; else null. */
  readonly imageFile: string | null;
}

/** Returns what `berth dev` prints when it serves: where to look, and what to type. */
export function greetingOf(greeted: Greeted): string {
  const { apiUrl, hosts, cells } = greeted;
  return [
    `${hosts} hosts in ${cells === 1 ? "1 cell" : `${cells} cells`}. The dashboard: ${apiUrl}/dashboard`,
    "",
    ...withClient(greeted),
    "With curl:",
    "",
    ...withCurl(greeted),
    "",
  ].join("\n");
}

function withClient({ cloudsFile, auth, imageFile }: Greeted): string[] {
  if (cloudsFile === null) return [];
  return [
    "With the openstack command (Debian, Ubuntu: apt install python3-openstackclient):",
    "",
    `  export OS_CLIENT_CONFIG_FILE=${shownPath(cloudsFile)} OS_CLOUD=berth`,
    // The same id as with curl, so that the lines of both work in one cloud.
    "  openstack flavor create --id small --vcpus 2 --ram 4096 --disk 20 small",
    imageFile === null
      ? "  openstack image create any"
      : `  openstack image create --disk-format raw --file ${shownPath(imageFile)} any`,
    "  openstack server create --flavor small --image any --wait first",
    "  openstack server list",
    ...(auth === "password" ? ["  TOKEN=$(openstack token issue -f value -c id)         # for curl, below"] : []),
    "",
  ];
}

/** A path as one types it in this directory. */
function shownPath(path: string): string {
  const inHere = relative(process.cwd(), path);
  return inHere.startsWith("..") ? path : `$PWD/${inHere}`;
}

function withCurl({ apiUrl, auth }: Greeted): string[] {
  const token = TOKEN_OPTION[auth];
  const json = `${token} -H 'content-type: application/json'`;
  return [
    `  curl -s ${apiUrl}/v2.1/flavors${json} -d '{"flavor": {"id": "small", "name": "small", "vcpus": 2, "ram": 4096, "disk": 20}}'`,
    `  curl -s ${apiUrl}/v2.1/servers${json} -d '{"server": {"name": "first", "flavorRef": "small", "imageRef": ""}}'`,
    `  curl -s ${apiUrl}/v2.1/servers/detail${token}`,
    `  curl -s ${apiUrl}/v2.1/os-hypervisors/detail${token}`,
    `  curl -s -X DELETE ${apiUrl}/v2.1/servers/ID${token}`,
  ];
}
