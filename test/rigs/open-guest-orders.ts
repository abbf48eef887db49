import { pino } from "pino";
import { Registry } from "prom-client";
import { noTracing } from "../../adapters/telemetry/tracing.ts";
import type { ConductorStream } from "../../core/agent/link.ts";
import type { AgentMessage, AttemptReport, OrderReport } from "../../proto/gen/berth/agent.ts";
import type { Clock } from "../../runtime/clock.ts";
import { AttemptReporter } from "../../services/compute-agent/attempt-reporter.ts";
import type { Driver } from "../../services/compute-agent/driver.ts";
import { AgentEvents } from "../../services/compute-agent/events.ts";
import { GuestChains } from "../../services/compute-agent/guest-chains.ts";
import { GuestObserver } from "../../services/compute-agent/guest-observer.ts";
import { GuestOrders } from "../../services/compute-agent/guest-orders.ts";
import { GuestStore } from "../../services/compute-agent/guest-store.ts";
import { createMemoryJournal, type MemoryDisk } from "../../services/compute-agent/memory-journal.ts";

/** The part of one agent process that carries out orders, and the reports that it has sent to its conductor. */
export interface OpenGuestOrders {
  readonly store: GuestStore;
  readonly observer: GuestObserver;
  readonly orders: GuestOrders;
  /** Gives orders and gets their answers. */
  readonly stream: ConductorStream;
  readonly answers: OrderReport[];
  readonly reports: AttemptReport[];
}

/** Opens it on a journal, as at the start of an agent. An unexpected error of the agent is thrown. */
export async function openGuestOrders(
  disk: MemoryDisk,
  { driver, clock }: { readonly driver: Driver; readonly clock: Clock },
): Promise<OpenGuestOrders> {
  const [answers, reports]: [OrderReport[], AttemptReport[]] = [[], []];
  const stream: ConductorStream = {
    closed: false,
    send: ({ body }: AgentMessage) => {
      if (body?.$case === "ordered") answers.push(body.value);
      if (body?.$case === "attempt") reports.push(body.value);
    },
    onMessages: () => {},
    onClose: () => {},
    close: () => {},
  };
  const fail = (error: unknown) => {
    throw error;
  };
  const told = { logger: pino({ level: "silent" }), registry: new Registry(), tracing: noTracing };
  const events = new AgentEvents({ ...told, fail, guestCount: () => 0 });
  const store = await GuestStore.open(createMemoryJournal(disk), clock);
  const parts = { store, chains: new GuestChains(), driver, clock, events };
  const observer = new GuestObserver(parts);
  const orders = new GuestOrders({ ...parts, observer, reporter: new AttemptReporter(store, () => null) });
  return { store, observer, orders, stream, answers, reports };
}
