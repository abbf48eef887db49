import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import type { Driver } from "./driver.ts";
import { CalledOffError } from "./guest-chains.ts";
import type { GuestStore } from "./guest-store.ts";
import type { GuestName } from "./journal.ts";

/** How long the agent waits for the driver to say in which state guests are. */
export const LOOK_TIMEOUT_MS = 5_000;

export const NO_GUEST = "there is no such guest";
/** Why a guest that the agent's journal does not know is not handed over, unless it is missing. */
export const UNKNOWN_GUEST = "the agent does not know the guest, which is on the host or cannot be looked at";

/** A guest cannot be handed over because its host is sure that it has none of that name. */
export class GuestMissingError extends Error {
  override readonly name = "GuestMissingError";
}

interface Host {
  readonly driver: Pick<Driver, "powersOf">;
  readonly store: Pick<GuestStore, "isBuried">;
  readonly clock: Clock;
}

/**
 * Why a guest could not be handed over: a GuestMissingError if the driver says that the guest is not on the host, and otherwise `error`. A guest may be on the host although the journal does not know it,
 * or be lost although it does, so only the driver's word counts. A driver that does not answer has said nothing. A guest that was destroyed by order, also during the
 * look, is not lost.
 */
export async function whyNotHandedOver(
  error: unknown,
  name: GuestName,
  { driver, store, clock }: Host,
): Promise<unknown> {
  if (error instanceof CalledOffError) return error;
  const look = withDeadline(driver.powersOf([name]), LOOK_TIMEOUT_MS, "a look at a guest", clock);
  const [found = "unknown"] = await look.catch(() => ["unknown"] as const);
  return found === "missing" && !store.isBuried(name) ? new GuestMissingError(NO_GUEST, { cause: error }) : error;
}
