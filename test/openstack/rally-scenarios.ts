/** A scenario of Debian's rally-openstack, and what it is given. */
export interface RallyScenario {
  readonly name: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export const RALLY_IMAGE = "rally-image";
export const RALLY_FLAVORS = ["rally-small", "rally-large"] as const;

const [flavor, to_flavor] = RALLY_FLAVORS.map((name) => ({ name }));
const booted = { image: { name: RALLY_IMAGE }, flavor };
const wanted = { ram: 500, vcpus: 1, disk: 1 };

const of = (group: string, names: string, args: RallyScenario["args"] = {}): readonly RallyScenario[] =>
  names.split(" ").map((name) => ({ name: `${group}.${name}`, args }));

/** Scenarios about Nova that hosts which pretend to build can end: those with an upload of a disk or with a console are left out. */
export const RALLY_SCENARIOS: readonly RallyScenario[] = [
  ...of("NovaServers", "boot_and_delete_server boot_and_list_server boot_and_show_server", booted),
  ...of("NovaServers", "boot_and_update_server boot_lock_unlock_and_delete pause_and_unpause_server", booted),
  ...of("NovaServers", "resize_server", { ...booted, to_flavor }),
  ...of("NovaServers", "resize_server", { ...booted, to_flavor, confirm: false }),
  ...of("NovaServers", "boot_and_migrate_server boot_and_live_migrate_server", booted),
  ...of("NovaServers", "list_servers"),
  ...of("NovaKeypair", "create_and_list_keypairs create_and_delete_keypair create_and_get_keypair"),
  ...of("NovaKeypair", "boot_and_delete_server_with_keypair", booted),
  ...of("NovaServerGroups", "create_and_list_server_groups create_and_delete_server_group", { policies: ["affinity"] }),
  ...of("NovaFlavors", "list_flavors"),
  ...of("NovaFlavors", "create_and_get_flavor create_and_delete_flavor create_flavor_and_add_tenant_access", wanted),
  ...of("NovaHypervisors", "list_hypervisors list_and_get_hypervisors"),
  ...of("NovaServices", "list_services"),
  ...of("NovaAvailabilityZones", "list_availability_zones"),
  ...of("Quotas", "nova_get nova_update nova_update_and_delete"),
];
