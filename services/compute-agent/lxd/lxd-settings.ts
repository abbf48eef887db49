import { directory, text } from "../../../runtime/setting-kinds.ts";
import { setting } from "../../../runtime/settings.ts";

const poolName = text({ pattern: /^[A-Za-z0-9._-]{1,63}$/, allowed: "the name of a storage pool of LXD" });

/**
 * The settings that only `--driver lxd` has. The driver also uses the images path, the bridge and the shutdown timeout.
 */
export const lxdSettings = {
  lxdSocket: setting(text(), { about: "for --driver lxd: LXD's unix socket", default: "/var/lib/lxd/unix.socket" }),
  lxdLogs: setting(directory, {
    about: "for --driver lxd: LXD's log directory, which has the containers' consoles",
    default: "/var/log/lxd",
  }),
  lxdStoragePool: setting(poolName, {
    about: "for --driver lxd: the storage pool of the root disks",
    default: "default",
  }),
} as const;
