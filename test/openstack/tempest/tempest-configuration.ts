import { MINOR_MAX } from "../../../services/api/http/microversion.ts";
import { SIMPLE_NETWORK } from "../../../services/api/network/simple-network.ts";

/** What a cloud has for Tempest: two flavors and two images. */
export interface TempestParts {
  readonly flavors: readonly string[];
  readonly images: readonly string[];
}

/**
 * Returns the configuration with which Tempest tests a cloud of `berth dev`.
 *
 * Source: https://docs.openstack.org/tempest/latest/sample_config.html
 */
export function tempestConfiguration(dir: string, url: string, { flavors, images }: TempestParts): string {
  return `${common(dir, url)}${compute(flavors, images)}${OTHERS}`;
}

const common = (dir: string, url: string): string => `[DEFAULT]
log_file = ${dir}/tempest.log
[oslo_concurrency]
lock_path = ${dir}
[auth]
use_dynamic_credentials = false
test_accounts_file = ${dir}/accounts.yaml
create_isolated_networks = false
[identity]
uri_v3 = ${url}/identity/v3
auth_version = v3
v3_endpoint_type = public
[identity-feature-enabled]
api_v2 = false
api_v3 = true
[service_available]
neutron = true
glance = true
cinder = true
nova = true
swift = false
`;

const compute = (flavors: readonly string[], images: readonly string[]): string => `[compute]
image_ref = ${images[0]}
image_ref_alt = ${images[1]}
flavor_ref = ${flavors[0]}
flavor_ref_alt = ${flavors[1]}
fixed_network_name = ${SIMPLE_NETWORK.name}
min_compute_nodes = 4
max_microversion = 2.${MINOR_MAX}
build_interval = 1
build_timeout = 60
ready_wait = 0
endpoint_type = public
[compute-feature-enabled]
resize = true
cold_migration = true
live_migration = true
block_migration_for_live_migration = true
pause = true
suspend = true
shelve = true
snapshot = true
rescue = true
personality = true
config_drive = true
console_output = true
# The fake driver has neither displays nor serial ports.
vnc_console = false
serial_console = false
spice_console = false
interface_attach = true
change_password = true
attach_encrypted_volume = false
swap_volume = false
volume_multiattach = false
volume_backed_live_migration = true
`;

const OTHERS = `[image]
build_timeout = 60
[network]
project_networks_reachable = false
[network-feature-enabled]
# Servers have floating IPs with Neutron only. This cloud has Berth's own network, which has no world outside, so that these tests are skipped.
floating_ips = false
api_extensions = binding,security-group,quotas,project-id
[validation]
# Guests of hosts that pretend to build have no system that answers SSH, so that tests which log in to guests are skipped.
run_validation = false
[volume]
build_interval = 1
build_timeout = 60
catalog_type = volumev3
[volume-feature-enabled]
backup = false
snapshot = false
`;
