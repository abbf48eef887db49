/** What a stack of the test is made of, and what its updates change. */
export interface HeatChoices {
  readonly image: string;
  readonly flavor: "small" | "large";
  readonly name: string;
  readonly note: string;
  readonly tag: string;
  /** Whether the server that boots from a volume has an interface more. */
  readonly hasMore: boolean;
  readonly many: number;
}

type Properties = Readonly<Record<string, unknown>>;

const of = (kind: string, properties: Properties, more: Properties = {}) => ({
  type: `OS::${kind}`,
  properties,
  ...more,
});

const made = (name: string) => ({ get_resource: name });

interface Around {
  /** Joins an aggregate with a zone. */
  readonly host: string;
  readonly project: string;
}

/** A stack with the kinds of Heat's resources that are made by the Compute API, and the networks and volumes that they need. */
export function heatTemplate(choices: HeatChoices, around: Around) {
  return {
    heat_template_version: "2021-04-16",
    resources: { ...whatServersNeed(around), ...serversOf(choices) },
    outputs: {
      addresses: { value: { get_attr: ["first", "addresses"] } },
      console: { value: { get_attr: ["first", "console_urls"] } },
      shown: { value: { get_attr: ["first", "show"] } },
      key: { value: { get_attr: ["key", "private_key"] } },
    },
  };
}

const whatServersNeed = ({ host, project }: Around) => ({
  key: of("Nova::KeyPair", { name: "heat-key", save_private_key: true }),
  small: of("Nova::Flavor", { ram: 128, vcpus: 1, disk: 1, extra_specs: { "hw:cpu_policy": "shared" } }),
  large: of("Nova::Flavor", { ram: 256, vcpus: 2, disk: 2 }),
  group: of("Nova::ServerGroup", { name: "heat-group", policies: ["anti-affinity"] }),
  quota: of("Nova::Quota", { project, instances: 31, metadata_items: 42 }),
  aggregate: of("Nova::HostAggregate", {
    ...{ name: "heat-aggregate", availability_zone: "heat-zone", hosts: [host], metadata: { ssd: "true" } },
  }),
  net: of("Neutron::Net", { name: "heat-net" }),
  subnet: of("Neutron::Subnet", { network: made("net"), cidr: "10.77.0.0/24", enable_dhcp: false }),
  other_net: of("Neutron::Net", { name: "heat-other-net" }),
  other_subnet: of("Neutron::Subnet", { network: made("other_net"), cidr: "10.78.0.0/24", enable_dhcp: false }),
  rules: of("Neutron::SecurityGroup", { rules: [{ protocol: "tcp", port_range_min: 22, port_range_max: 22 }] }),
  port: of("Neutron::Port", { network: made("net"), security_groups: [made("rules")] }, { depends_on: "subnet" }),
});

function serversOf(choices: HeatChoices) {
  const basis = { image: choices.image, flavor: made("small"), networks: [{ network: made("net") }] };
  // A host that has servers does not change its zone.
  const after = { depends_on: ["subnet", "aggregate"] };
  return {
    first: of(
      "Nova::Server",
      {
        ...{ ...basis, flavor: made(choices.flavor), name: choices.name, key_name: made("key") },
        ...{ networks: [{ port: made("port") }], config_drive: true, user_data: "#!/bin/sh\n" },
        ...{ user_data_format: "RAW", metadata: { note: choices.note }, tags: ["heat", choices.tag] },
        ...{ scheduler_hints: { group: made("group") }, image_update_policy: "REBUILD" },
      },
      after,
    ),
    second: of(
      "Nova::Server",
      { ...basis, scheduler_hints: { group: made("group") }, flavor: made("small"), image_update_policy: "REPLACE" },
      after,
    ),
    data: of("Cinder::Volume", { size: 1, metadata: { a: "b" } }),
    attached: of("Cinder::VolumeAttachment", { instance_uuid: made("first"), volume_id: made("data") }),
    disk: of("Cinder::Volume", { size: 1, image: choices.image }),
    from_volume: of(
      "Nova::Server",
      {
        ...{
          flavor: made("small"),
          networks: [{ network: made("net") }, ...(choices.hasMore ? [{ network: made("other_net") }] : [])],
        },
        block_device_mapping_v2: [{ volume_id: made("disk"), boot_index: 0, delete_on_termination: false }],
      },
      { depends_on: ["subnet", "other_subnet", "aggregate"] },
    ),
    from_image: of(
      "Nova::Server",
      {
        ...{ flavor: made("small"), networks: [{ network: made("net") }] },
        block_device_mapping_v2: [{ image: choices.image, volume_size: 1, boot_index: 0, delete_on_termination: true }],
      },
      after,
    ),
    many: of(
      "Heat::ResourceGroup",
      { count: choices.many, resource_def: of("Nova::Server", { ...basis, name: "many-%index%" }) },
      after,
    ),
  };
}
