import { Type } from "typebox";
import { LinksSchema, NullableString } from "../../http/schema.ts";

const Id = Type.Unsafe<string | number>({});

const Brief = {
  id: Id,
  hypervisor_hostname: Type.String(),
  state: Type.String(),
  status: Type.String(),
  servers: Type.Optional(Type.Array(Type.Object({ name: Type.String(), uuid: Type.String() }))),
};
const Sums = {
  vcpus: Type.Integer(),
  vcpus_used: Type.Integer(),
  memory_mb: Type.Integer(),
  memory_mb_used: Type.Integer(),
  free_ram_mb: Type.Integer(),
  local_gb: Type.Integer(),
  local_gb_used: Type.Integer(),
  free_disk_gb: Type.Integer(),
  disk_available_least: Type.Integer(),
  current_workload: Type.Integer(),
  running_vms: Type.Integer(),
};
const Detail = Type.Object({
  ...Brief,
  hypervisor_type: Type.String(),
  hypervisor_version: Type.Integer(),
  host_ip: NullableString,
  service: Type.Object({ id: Id, host: Type.String(), disabled_reason: NullableString }),
  uptime: Type.Optional(NullableString),
  cpu_info: Type.Optional(Type.Unsafe<string | object>({})),
  ...Type.Partial(Type.Object(Sums)).properties,
});

export const HypervisorListAnswer = Type.Object({
  hypervisors: Type.Array(Type.Object(Brief)),
  hypervisors_links: Type.Optional(LinksSchema),
});
export const HypervisorDetailsAnswer = Type.Object({
  hypervisors: Type.Array(Detail),
  hypervisors_links: Type.Optional(LinksSchema),
});
export const HypervisorAnswer = Type.Object({ hypervisor: Detail });
export const HypervisorUptimeAnswer = Type.Object({
  hypervisor: Type.Object({ ...Brief, uptime: Type.String() }),
});
export const StatisticsAnswer = Type.Object({
  hypervisor_statistics: Type.Object({ count: Type.Integer(), ...Sums }),
});
