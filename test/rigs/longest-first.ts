import { join } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";

const ROOT = join(import.meta.dirname, "../..");

/** The files that take longest, beginning with the longest one. */
export const LONGEST: readonly string[] = [
  "test/openstack/real-cloud.test.ts",
  "services/compute-agent/qemu/qemu-driver.long.test.ts",
  "services/compute-agent/qemu/forced-hand-over.long.test.ts",
  "test/e2e/interrupted-guests.long.test.ts",
  "release/made-package.long.test.ts",
  "test/e2e/guests.long.test.ts",
  "test/e2e/interrupted-resizes.long.test.ts",
  "services/compute-agent/qemu/interrupted-hand-over.long.test.ts",
  "services/compute-agent/qemu/hand-over.long.test.ts",
  "services/compute-agent/lxd/lxd-driver.long.test.ts",
  "services/compute-agent/qemu/interrupted-power.long.test.ts",
  "test/e2e/lost-connections.long.test.ts",
  "test/e2e/jumping-clocks.long.test.ts",
  "test/e2e/silent-storage.long.test.ts",
  "services/compute-agent/qemu/guest-volumes.long.test.ts",
  "test/chaos/plans.long.test.ts",
  "services/compute-agent/qemu/linux-guest.long.test.ts",
  "test/e2e/crashes.long.test.ts",
  "test/e2e/interrupted-interfaces.long.test.ts",
  "test/e2e/containers.long.test.ts",
  "test/integration/replay.long.test.ts",
  "test/e2e/many-guests.long.test.ts",
  "test/tutorials/own-suite.long.test.ts",
  "test/sim/mutations.long.test.ts",
  "test/e2e/pinned-containers.long.test.ts",
  "test/e2e/moves.long.test.ts",
  "test/e2e/endings.long.test.ts",
  "test/e2e/high-availability.long.test.ts",
  "test/e2e/operators.long.test.ts",
  "test/e2e/queue-lost.long.test.ts",
  "services/compute-agent/lxd/two-lxds.long.test.ts",
  "test/tutorials/tutorials.long.test.ts",
  "sim/run-worlds.long.test.ts",
  "services/compute-agent/qemu/resized-disks.long.test.ts",
  "test/e2e/pinned-guests.long.test.ts",
  "test/e2e/dashboard.long.test.ts",
  "test/integration/berth-dev.long.test.ts",
  "test/integration/cinder-migrations.long.test.ts",
  "cli/operators/made-up-machine.long.test.ts",
  "test/integration/moves-model.long.test.ts",
  "test/e2e/up-calls.long.test.ts",
  "services/compute-agent/qemu/interrupted-interfaces.long.test.ts",
  "test/integration/cell-forgets.long.test.ts",
  "test/e2e/group-moves.long.test.ts",
  "test/integration/placement/malformed.long.test.ts",
  "test/e2e/laws.long.test.ts",
  "test/e2e/full-disk.long.test.ts",
  "test/e2e/races.long.test.ts",
  "test/e2e/own-suite.long.test.ts",
  "test/integration/api/malformed-routes.long.test.ts",
  "test/integration/temporary-cloud.long.test.ts",
  "test/e2e/host-trees.long.test.ts",
  "test/integration/berth-cell.long.test.ts",
  "test/integration/berth-dev-qemu.long.test.ts",
  "adapters/postgres/embedded/embedded-standby.long.test.ts",
  "test/e2e/guest-displays.long.test.ts",
  "deploy/helm-itself.long.test.ts",
  "test/sim/worlds.long.test.ts",
  "test/integration/cinder.test.ts",
  "adapters/postgres/cell/postgres-cell-store.test.ts",
  "test/integration/volumes.test.ts",
  "test/e2e/boots.test.ts",
  "test/integration/cinder-unconfirmed.test.ts",
  "test/integration/server-images.test.ts",
  "examples/own-filter/cool-hosts.test.ts",
  "test/integration/audit.test.ts",
  "test/integration/api/soft-deletions.test.ts",
  "test/integration/cell-volume-snapshots.test.ts",
  "test/integration/audit-command.test.ts",
  "test/integration/open-network.test.ts",
  "test/integration/nats-bus.test.ts",
  "chaos/kit/run-suite.test.ts",
  "test/sim/sim.test.ts",
  "test/integration/cell-home-ports.test.ts",
  "test/integration/api/neutron.test.ts",
  "test/integration/sealed-marks.test.ts",
  "test/integration/follower.test.ts",
  "test/integration/audit-watch.test.ts",
  "test/integration/host-drain.test.ts",
];

/**
 * Begins with the files that take longest, so that none of them is left to one worker at the end. Otherwise the order is Vitest's own, which
 * knows how long files took only where they have run before.
 */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const ranks = new Map(LONGEST.map((file, rank) => [join(ROOT, file), rank]));
    const rankOf = ({ moduleId }: TestSpecification) => ranks.get(moduleId) ?? LONGEST.length;
    return (await super.sort(files)).sort((one, other) => rankOf(one) - rankOf(other));
  }
}
