import type { ServerDetail } from "./server-schemas.ts";

/** The first microversion in which the answers to PUT and rebuild have all fields of a server. */
const WHOLE_FROM_MINOR = 75;
/** The first microversions in which the answer to rebuild has the key pair, and the user data under a name of its own. */
const KEY_FROM_MINOR = 54;
const USER_DATA_FROM_MINOR = 57;

const ONLY_WHOLE: readonly (keyof ServerDetail)[] = [
  "config_drive",
  "security_groups",
  "host_status",
  "os-extended-volumes:volumes_attached",
  "OS-EXT-AZ:availability_zone",
  "OS-EXT-STS:power_state",
  "OS-EXT-STS:task_state",
  "OS-EXT-STS:vm_state",
  "OS-SRV-USG:launched_at",
  "OS-SRV-USG:terminated_at",
  "OS-EXT-SRV-ATTR:host",
  "OS-EXT-SRV-ATTR:hostname",
  "OS-EXT-SRV-ATTR:hypervisor_hostname",
  "OS-EXT-SRV-ATTR:instance_name",
  "OS-EXT-SRV-ATTR:kernel_id",
  "OS-EXT-SRV-ATTR:launch_index",
  "OS-EXT-SRV-ATTR:ramdisk_id",
  "OS-EXT-SRV-ATTR:reservation_id",
  "OS-EXT-SRV-ATTR:root_device_name",
  "OS-EXT-SRV-ATTR:user_data",
];

/** Returns the fields that the answer to `PUT /servers/{id}` has in a microversion. Source: Nova's `ServersController.update`. */
export function updatedView(view: Partial<ServerDetail>, minor: number): Partial<ServerDetail> {
  return minor >= WHOLE_FROM_MINOR ? view : without(briefAddresses(view), [...ONLY_WHOLE, "key_name"]);
}

/** Returns the fields that the answer to a rebuild has in a microversion. Source: Nova's `ServersController._action_rebuild`. */
export function rebuiltView(
  view: Partial<ServerDetail>,
  userData: string | null,
  minor: number,
): Partial<ServerDetail> & { readonly user_data?: string | null } {
  const hidden: readonly (keyof ServerDetail)[] = [
    ...(minor >= WHOLE_FROM_MINOR ? (["OS-EXT-SRV-ATTR:user_data"] as const) : ONLY_WHOLE),
    ...(minor >= KEY_FROM_MINOR ? [] : (["key_name"] as const)),
  ];
  const shown = minor >= WHOLE_FROM_MINOR ? view : briefAddresses(view);
  return { ...without(shown, hidden), ...(minor >= USER_DATA_FROM_MINOR && { user_data: userData }) };
}

/** Returns the view with only the address and the version of each address, without its type and the port's MAC address. */
function briefAddresses(view: Partial<ServerDetail>): Partial<ServerDetail> {
  if (view.addresses === undefined) return view;
  const brief = Object.entries(view.addresses).map(([network, addresses]) => [
    network,
    addresses.map(({ addr, version }) => ({ addr, version })),
  ]);
  return { ...view, addresses: Object.fromEntries(brief) };
}

function without(view: Partial<ServerDetail>, hidden: readonly (keyof ServerDetail)[]): Partial<ServerDetail> {
  const shown = { ...view };
  for (const field of hidden) delete shown[field];
  return shown;
}
