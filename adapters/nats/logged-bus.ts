import type { Logger } from "../../runtime/logger.ts";
import { createNatsBus, type NatsBus } from "./nats-bus.ts";
import type { NatsEvent } from "./nats-link.ts";

/** Opens a service's connection to one of its buses and logs the connection's events. `what` is the name of the bus in the log. */
export function openLoggedBus(options: {
  readonly url: string;
  /** The service's name, as the NATS server shows it. */
  readonly name: string;
  readonly what: string;
  readonly logger: Logger;
}): NatsBus {
  const { url, name, what, logger } = options;
  const onEvent = (event: NatsEvent) => {
    if (event.kind !== "streams-full") return logger.info({ bus: what, event }, "the connection to NATS has changed");
    logger.warn(
      { bus: what, event },
      "NATS has no room for more messages: give its streams more storage. Until then, sweeps find the work some seconds later",
    );
  };
  return createNatsBus({ url, name, onEvent });
}
