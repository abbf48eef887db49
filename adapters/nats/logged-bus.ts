import type { Logger } from "../../runtime/logger.ts";
import { createNatsBus, type NatsBus } from "./nats-bus.ts";

/** A service's connection to one of its buses, which the log calls `what`: it tells what becomes of the connection. */
export function openLoggedBus(options: {
  readonly url: string;
  /** Of the service, as the NATS server shows it. */
  readonly name: string;
  readonly what: string;
  readonly logger: Logger;
}): NatsBus {
  const { url, name, what, logger } = options;
  return createNatsBus({ url, name, onEvent: (event) => logger.info({ bus: what, event }, "bus connection") });
}
