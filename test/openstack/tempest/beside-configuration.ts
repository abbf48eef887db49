import { join } from "node:path";
import { ADMIN_PASSWORD } from "../real-keystone.ts";

/** A cloud with real neighbours, as Tempest tests it. */
export interface BesideCloud {
  readonly directory: string;
  readonly identityUrl: string;
  /** The region of the neighbours. */
  readonly region: string;
  /** The region of the Compute API and its Placement. */
  readonly computeRegion: string;
  readonly images: readonly string[];
  readonly flavors: readonly string[];
  /** A network that all projects share, and one from which floating addresses come. */
  readonly network: string;
  readonly outside: string;
  readonly outsideId: string;
  readonly hostsMin: number;
  /** The newest microversion to test. */
  readonly maxVersion: string;
  /** The extensions of the neighbouring Neutron. */
  readonly networkExtensions: readonly string[];
}

/**
 * Returns the configuration with which Tempest tests Berth or Debian's Nova beside real neighbours.
 *
 * Source: https://docs.openstack.org/tempest/latest/sample_config.html
 */
export function besideConfiguration(cloud: BesideCloud): string {
  return `${common(cloud)}${compute(cloud)}${others(cloud)}`;
}

const common = ({ directory, identityUrl, region }: BesideCloud): string => `[DEFAULT]
log_file = ${join(directory, "tempest.log")}
[oslo_concurrency]
lock_path = ${directory}
[auth]
use_dynamic_credentials = false
test_accounts_file = ${join(directory, "accounts.yaml")}
create_isolated_networks = false
admin_username = admin
admin_project_name = admin
admin_password = ${ADMIN_PASSWORD}
admin_domain_name = Default
[identity]
uri_v3 = ${identityUrl}
auth_version = v3
v3_endpoint_type = public
region = ${region}
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

const compute = ({ computeRegion, images, flavors, network, ...of }: BesideCloud): string => `[compute]
region = ${computeRegion}
image_ref = ${images[0]}
image_ref_alt = ${images[1]}
flavor_ref = ${flavors[0]}
flavor_ref_alt = ${flavors[1]}
fixed_network_name = ${network}
min_compute_nodes = ${of.hostsMin}
max_microversion = ${of.maxVersion}
shelved_offload_time = 0
build_interval = 1
build_timeout = 300
ready_wait = 0
endpoint_type = public
[placement]
region = ${computeRegion}
[compute-feature-enabled]
resize = true
cold_migration = true
live_migration = true
live_migrate_back_and_forth = true
block_migration_for_live_migration = true
volume_backed_live_migration = true
pause = true
suspend = true
shelve = true
# Both fake drivers leave the images of servers queued, so that most tests of images fail for both; Berth's trial cloud runs them.
snapshot = true
rescue = true
personality = false
config_drive = true
console_output = true
# The displays of the two fake drivers cannot be compared.
vnc_console = false
serial_console = false
spice_console = false
interface_attach = true
change_password = true
attach_encrypted_volume = false
swap_volume = true
# This Tempest makes such volumes with a parameter that this Cinder no longer has.
volume_multiattach = false
`;

const others = ({ outside, outsideId, networkExtensions }: BesideCloud): string => `[image]
build_timeout = 30
[network]
project_networks_reachable = false
public_network_id = ${outsideId}
floating_network_name = ${outside}
[network-feature-enabled]
floating_ips = true
api_extensions = ${networkExtensions.join(",")}
[validation]
# Guests of fake drivers have no system that answers SSH, so that tests which log in to guests are skipped.
run_validation = false
[volume]
build_interval = 1
build_timeout = 300
catalog_type = volumev3
[volume-feature-enabled]
backup = false
snapshot = false
`;
