import type { Logger } from "../../runtime/logger.ts";
import { createNatsBus, type NatsBus } from "./nats-bus.ts";
import type { NatsEvent } from "./nats-link.ts";

/** A service's connection to one of its buses, which the log calls `what`: it tells what becomes of the connection. */
export function openLoggedBus(options: {
  readonly url: string;
  /** Of the service, as the NATS server shows it. */
  readonly name: string;
  readonly what: string;
  readonly logger: Logger;
}): NatsBus {
  const { url, name, what, logger } = options;
  const onEvent = (event: NatsEvent) => {
    if (event.kind !== "streams-full") return logger.info({ bus: what, event }, "bus connection");
    logger.warn(
      { bus: what, event },
      "NATS has no room for messages: give it room; sweeps do their work meanwhile, later",
    );
  };
  return createNatsBus({ url, name, onEvent });
}
