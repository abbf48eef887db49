import { existsSync } from "node:fs";
import { resolve } from "node:path";
import type { MachineLayout } from "../../../core/pinning/machine-layout.ts";
import type { Clock } from "../../../runtime/clock.ts";
import type { Logger } from "../../../runtime/logger.ts";
import { SettingsError } from "../../../runtime/settings.ts";
import { driverWarnings } from "../driver-warnings.ts";
import type { HostConfig } from "../host-config.ts";
import type { AgentOptions } from "../settings.ts";
import { LxdDriver } from "./lxd-driver.ts";

export interface OpenedLxdDriver {
  readonly driver: LxdDriver;
  /** Hypervisor facts for filters and weighers, used for hosts whose configuration does not state them. */
  readonly hypervisor: NonNullable<HostConfig["hypervisor"]>;
}

/** Opens a driver of containers with an operator's settings. Throws a SettingsError when something is missing. */
export function openLxdDriver(
  settings: Pick<
    AgentOptions,
    | "lxdSocket"
    | "lxdLogs"
    | "lxdStoragePool"
    | "imagesPath"
    | "bridge"
    | "shutdownTimeout"
    | "liveMigrationInboundAddr"
  >,
  {
    clock,
    logger,
    layoutOf,
  }: {
    readonly clock: Clock;
    readonly logger: Logger;
    readonly layoutOf: (host: string) => MachineLayout | null;
  },
): OpenedLxdDriver {
  const { lxdSocket, lxdLogs, lxdStoragePool: storagePool, imagesPath, bridge, shutdownTimeout: shutdownMs } = settings;
  if (imagesPath === null)
    throw new SettingsError("BERTH_IMAGES_PATH (--images-path) is missing: --driver lxd needs the directory of images");
  if (!existsSync(lxdSocket))
    throw new SettingsError(
      `--driver lxd: there is no socket ${lxdSocket}; start LXD or set BERTH_LXD_SOCKET (--lxd-socket)`,
    );
  const driver = new LxdDriver({
    ...{
      clock,
      socketPath: lxdSocket,
      logsPath: resolve(lxdLogs),
      imagesPath: resolve(imagesPath),
      storagePool,
      bridge,
      inboundAddress: settings.liveMigrationInboundAddr,
      shutdownMs,
      layoutOf,
    },
    ...driverWarnings(logger),
  });
  return { driver, hypervisor: { type: "lxd", supported_instances: [["x86_64", "lxc", "exe"]] } };
}
