import { execFileSync } from "node:child_process";
import { dirname } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFailed, test } from "vitest";
import type { LocalService } from "../../chaos/local/local-service.ts";
import { OWN_BERTH, ServiceProcess } from "../../chaos/local/service-process.ts";
import { Cloud } from "./cloud.ts";
import { findOldRef, HOW_TO_NAME_AN_OLD_VERSION, type OldVersion, openOldVersion } from "./old-version.ts";
import { WorkThrough } from "./work-through.ts";

/** Limits for steps that take minutes even on an idle machine. */
const SLOW_MS = 900_000;

const ref = findOldRef();
if (ref === null) process.stderr.write(`mixed-versions.test.ts is skipped: ${HOW_TO_NAME_AN_OLD_VERSION}\n`);

describe.skipIf(ref === null)(`a cloud of ${ref ?? "an older version"} that is upgraded to this version`, () => {
  let old: OldVersion;
  let cloud: Cloud;
  let work: WorkThrough;
  /** Parts that start with this version from now on. */
  let upgraded: Set<string>;

  beforeAll(async () => {
    old = await openOldVersion(ref ?? "");
  }, SLOW_MS);
  afterAll(() => old?.remove());

  /** A busy cloud of only the old version, whose databases the new version has migrated meanwhile. */
  beforeEach(async () => {
    upgraded = new Set();
    cloud = await Cloud.start({
      cells: ["cell-1", "cell-2"],
      // A refusal only because of slowness says nothing about versions.
      env: { BERTH_CELL_DEADLINE: "30s" },
      berth: (part) => (upgraded.has(part) ? OWN_BERTH : old.berth),
    });
    onTestFailed(() => cloud.printLogs());
    work = await WorkThrough.open(cloud);
    const begun = await work.beginBuilds(4);
    const migration = { name: "db migrate", argv: ["db", "migrate"] };
    await new ServiceProcess({ ...migration, env: () => ({ BERTH_DATABASE_URL: cloud.databaseUrl }) }).run();
    await work.round(begun);
    for (const service of cloud.services) expect(commandOf(service)).toContain(dirname(dirname(old.berth)));
  }, SLOW_MS);
  afterEach(() => cloud?.close());

  /** Stops one process after the other in order and restarts it with this version, while builds are running. */
  async function upgrade(services: readonly LocalService[]): Promise<void> {
    const begun = await work.beginBuilds(6);
    for (const service of services) {
      upgraded.add(service.name);
      expect([service.name, await service.stop()]).toEqual([service.name, "exit code 0"]);
      await service.start();
      await cloud.makeWhole();
      expect(commandOf(service)).toContain(dirname(dirname(OWN_BERTH)));
    }
    await work.round(begun);
  }

  const firstConductors = () => cloud.cells.flatMap((cell) => cell.conductors.slice(0, 1));
  const otherConductors = () => cloud.cells.flatMap((cell) => cell.conductors.slice(1));
  const agents = () => cloud.cells.flatMap((cell) => cell.agents);

  test(
    "new conductors and agents work under an old api and old schedulers",
    async () => {
      await upgrade(firstConductors());
      await upgrade(otherConductors());
      await upgrade(agents());
      await upgrade(cloud.schedulers.slice(0, 1));
      await upgrade([...cloud.schedulers.slice(1), cloud.api]);
      await work.end();
    },
    SLOW_MS,
  );

  test(
    "old conductors and agents work under a new api and new schedulers",
    async () => {
      await upgrade([cloud.api]);
      await upgrade(cloud.schedulers);
      await upgrade(agents());
      await upgrade([...firstConductors(), ...otherConductors()]);
      await work.end();
    },
    SLOW_MS,
  );
});

/** The command line of the process, which shows which tree it runs from. */
function commandOf(service: LocalService): string {
  return execFileSync("ps", ["-ww", "-o", "args=", "-p", `${service.pid}`], { encoding: "utf8" });
}
