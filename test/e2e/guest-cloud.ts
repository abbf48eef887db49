import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach } from "vitest";
import { makeQemuGuestsDir, type QemuGuestsDir } from "../rigs/qemu-guests.ts";
import type { E2eCell } from "./cell.ts";
import { Cloud } from "./cloud.ts";

type Environment = Readonly<Record<string, string>>;

export interface GuestCloudOptions {
  /** Each has one host. */
  readonly agents: number;
  /** Whether all hosts have the same directory of guests, as on a shared file system. */
  readonly isShared: boolean;
  /** For all services, beside what each of them needs for virtual machines. */
  readonly env?: (dir: QemuGuestsDir) => Environment;
  readonly conductorEnv?: Environment;
  readonly agentEnv?: (agent: string, dir: QemuGuestsDir) => Environment;
  /** Where the directories of the first agent's guests are, if they are on a storage of their own. Called when the cloud starts. */
  readonly firstStorage?: () => string;
}

/** A cloud of one cell, whose hosts run virtual machines. */
export interface GuestCloud {
  readonly cloud: Cloud;
  readonly cell: E2eCell;
  readonly dir: QemuGuestsDir;
  /** The directory of the guests of an agent's host. */
  instancesOf(agent: string): string;
}

/** Starts such a cloud before the tests around this call, hands it to `begin`, and ends it and its guests after them. */
export function useGuestCloud(options: GuestCloudOptions, begin: (made: GuestCloud) => Promise<void>): void {
  let dir: QemuGuestsDir | undefined;
  let cloud: Cloud | undefined;

  beforeAll(async () => {
    const made = makeQemuGuestsDir();
    dir = made;
    const storage = options.firstStorage?.();
    const parentOf = (agent: string) => (agent.endsWith("-1") ? storage : undefined) ?? made.instancesPath;
    const instancesOf = (agent: string) => (options.isShared ? made.instancesPath : join(parentOf(agent), agent));
    cloud = await Cloud.start({
      ...{ cells: ["cell-1"], schedulers: 1, conductors: 1, hostsPerAgent: 1, agents: options.agents },
      env: {
        ...{ BERTH_DRIVER: "qemu", BERTH_ACCEL: "tcg", BERTH_SHUTDOWN_TIMEOUT: "5s", BERTH_IMAGES_PATH: made.images },
        ...options.env?.(made),
      },
      // On a busy machine an agent needs long to start again.
      conductorEnv: { BERTH_AGENT_UNSEEN: "60s", BERTH_HOST_GRACE: "60s", ...options.conductorEnv },
      agentEnv: (agent) => {
        mkdirSync(instancesOf(agent), { recursive: true });
        return { BERTH_INSTANCES_PATH: instancesOf(agent), ...options.agentEnv?.(agent, made) };
      },
    });
    await begin({ cloud, cell: cloud.cell("cell-1"), dir: made, instancesOf });
  });
  afterAll(async () => {
    await cloud?.close();
    await dir?.remove();
  });
  beforeEach(() => cloud?.beforeTest());
}
