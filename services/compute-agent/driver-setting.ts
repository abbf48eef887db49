import { oneOf } from "../../runtime/setting-kinds.ts";
import { setting } from "../../runtime/settings.ts";

const NAMES = ["fake", "qemu", "lxd"] as const;

export type DriverName = (typeof NAMES)[number];

/** The setting of an agent's driver, and of commands that show what an agent with that driver would do. */
export const driverSetting = setting(oneOf(...NAMES), {
  about: "what builds servers: fake pretends to, qemu runs virtual machines, lxd containers",
  default: "fake",
});
