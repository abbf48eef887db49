import { DEFAULT_PARTS, type PartName } from "./command/parts.ts";

/**
 * Whether tests run against OpenStack's own services and clients. `npm run test:openstack` installs them and asks for it; other runs do not use what
 * happens to be installed, since these services take long on a busy machine.
 */
export const isAsked = process.env.BERTH_TEST_OPENSTACK === "true";

/** The parts that `npm run test:openstack` was told to run. */
export const askedParts: readonly string[] = isAsked
  ? (process.env.BERTH_TEST_OPENSTACK_PARTS?.split(",") ?? DEFAULT_PARTS)
  : [];

/** Whether a part with tests of its own runs. */
export const isPartAsked = (part: PartName): boolean => askedParts.includes(part);
