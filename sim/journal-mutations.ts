import { overriding } from "../runtime/overriding.ts";
import type { Driver } from "../services/compute-agent/driver.ts";

/** Bugs of agents that have lost their journals. */
export const JOURNAL_MUTATIONS = [
  {
    name: "hosted-guests-ignored",
    about: "an agent that has lost its journal does not ask its driver which guests exist",
    profile: "journal-lost",
    driver: (driver: Driver) => overriding(driver, { hostedGuests: async () => [] }),
  },
  {
    name: "unlisted-is-none",
    about: "a driver that cannot list its guests counts as one that has none",
    profile: "journal-lost",
    driver: (driver: Driver) =>
      overriding(driver, { hostedGuests: (hosts, known) => driver.hostedGuests(hosts, known).catch(() => []) }),
  },
] as const;
