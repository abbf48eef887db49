/** The clouds that Tempest tests: one of `berth dev`, or Berth beside a real Keystone, Glance, Neutron and Cinder. */
export type JudgedCloud = "trial" | "real";

const SWAPS =
  "admin.test_volumes_negative.VolumesAdminNegativeTest.test_update_attached_volume_with_nonexistent_volume_in_body";

/** Why tests of Tempest fail against a cloud, with the beginnings of their names. */
const EXPECTED: Readonly<Record<JudgedCloud, Readonly<Record<string, readonly string[]>>>> = {
  trial: {
    "the tests make projects and users, which a trial cloud reads from a file at its start": [
      "setUpClass (admin.test_quotas",
    ],
    "the volumes of a trial cloud are made empty, and not from images": [
      "admin.test_live_migration.LiveAutoBlockMigrationV225Test.test_volume_backed_live_migration",
      "admin.test_live_migration.LiveMigrationTest.test_volume_backed_live_migration",
      "servers.test_server_actions.ServerActionsTestJSON.test_resize_volume_backed_server_confirm",
      "setUpClass (servers.test_create_server.ServersTestBootFromVolume)",
    ],
    "the image of an offloaded server stays after it was unshelved, until the server is deleted or offloaded again, since later moves may need it":
      ["servers.test_server_actions.ServerActionsTestJSON.test_shelve_unshelve_server"],
    "simple networks have one network, and no other can be made": [
      "servers.test_create_server_multi_nic.ServersTestMultiNic",
    ],
    "only the Block Storage service swaps volumes, so that a volume that does not exist is not looked for": [SWAPS],
  },
  real: {
    "only Cinder may replace a volume, while it migrates it: newer Novas refuse it with the same words": [
      "admin.test_volume_swap.TestVolumeSwap.test_volume_swap",
      SWAPS,
    ],
    "hosts that pretend to build have no disk to upload, so that images of servers stay queued in Glance, as with Nova's fake driver":
      [
        "images.test_images.ImagesTestJSON.test_create_image_from_",
        "images.test_images.ImagesTestJSON.test_create_server_from_snapshot",
        "images.test_images_oneserver.ImagesOneServerTestJSON.",
        "servers.test_server_actions.ServerActionsTestJSON.test_create_backup",
        "setUpClass (images.test_list_image_filters.",
      ],
    "the tests make users, for which this Tempest needs an account of its own kind": ["setUpClass (admin.test_quotas"],
  },
};

/** Why tests pass or fail as the machine is slow or quick, with the beginnings of their names: neither is a surprise. */
const TIMED: Readonly<Record<string, readonly string[]>> = {
  "hosts that pretend to build copy a disk at once, so that an image is still being saved when the next one is asked for only if the machine is slow":
    ["images.test_images_oneserver_negative.ImagesOneServerNegativeTestJSON.test_create_second_image_when_first"],
  "the ports of a deleted server end a moment after it, so that its security group is still in use for as long": [
    "tearDownClass (security_groups.test_security_groups.",
  ],
};

/** Returns why a test is expected to fail, or may fail, or null. */
export function expectedFailure(test: string, cloud: JudgedCloud): string | null {
  const reason = [EXPECTED[cloud], TIMED]
    .flatMap((reasons) => Object.entries(reasons))
    .find(([, names]) => names.some((name) => test.startsWith(name)));
  return reason?.[0] ?? null;
}

/**
 * Returns the entries whose tests all pass: their reasons are no longer true, so that they must be removed. Tests whose outcome depends on
 * the machine's speed have no such entry.
 */
export function passingEntries(
  passed: readonly string[],
  failed: readonly string[],
  cloud: JudgedCloud,
): readonly string[] {
  const includes = (tests: readonly string[], name: string) => tests.some((test) => test.startsWith(name));
  return Object.values(EXPECTED[cloud])
    .flat()
    .filter((name) => includes(passed, name) && !includes(failed, name));
}
