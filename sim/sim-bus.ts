import { type Bus, BusError, type BusMessage, type PublishOptions, type Subscription } from "../runtime/bus.ts";
import type { NoAnswerError, SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

/** Subjects of cells' queues of tasks. */
const TASKS = /^cell\..*\.tasks$/;

/**
 * A process's connection to a broker over the network: publishes, deliveries and acknowledgements take time, arrive out of order and get
 * lost, deliveries may come twice, and tasks may be stored twice. When the process is killed, the broker removes its subscriptions.
 */
export function simBus(
  process: SimProcess,
  place: string,
  bus: Bus,
  { network, clock }: Pick<World, "network" | "clock">,
): Bus {
  const subscriptions = new Set<Subscription>();
  process.onKill(() => {
    for (const subscription of subscriptions) void subscription.stop();
  });
  const asBusError = (about: string) => (error: NoAnswerError) => new BusError("timeout", about, error.message);
  const copy = copier(bus, { network, clock });
  return {
    publish(subject, data, options) {
      const publish = () => {
        copy(subject, data, options?.headers);
        return bus.publish(subject, data, options);
      };
      return process.call(place, publish, asBusError(subject));
    },
    ensureStreams: (specs) => process.call(place, () => bus.ensureStreams(specs), asBusError("streams")),
    ask: (subject, question, options) =>
      process.call(place, () => bus.ask(subject, question, options), asBusError(subject)),
    async answer(subject, onQuestion) {
      const overNetwork = (question: Uint8Array) =>
        new Promise<Uint8Array>((resolve, reject) => {
          const answer = (tell: () => void) => process.send(place, tell);
          process.receive(place, () =>
            onQuestion(question).then(
              (bytes) => answer(() => resolve(bytes)),
              (error: unknown) => answer(() => reject(error)),
            ),
          );
        });
      const subscription = await process.call(place, () => bus.answer(subject, overNetwork), asBusError(subject));
      subscriptions.add(subscription);
      return {
        stop: async () => {
          subscriptions.delete(subscription);
          await subscription.stop();
        },
      };
    },
    streamState: () => bus.streamState(),
    async consume(name, options, onMessage) {
      const deliver = (message: BusMessage) => {
        const copies = network.arrivesTwice() ? 2 : 1;
        for (let copy = 0; copy < copies; copy += 1)
          process.receive(place, () => onMessage(answeredOverNetwork(process, place, message)));
      };
      const subscription = await process.call(
        place,
        () => bus.consume(name, options, deliver),
        asBusError(name.stream),
      );
      subscriptions.add(subscription);
      return {
        stop: async () => {
          subscriptions.delete(subscription);
          await subscription.stop();
        },
      };
    },
    close: async () => {
      for (const subscription of subscriptions) await subscription.stop();
      subscriptions.clear();
    },
  };
}

/** Returns what stores some tasks a second time. A copy has no id, by which the stream would drop it. A world that has ended takes none. */
function copier(bus: Bus, { network, clock }: Pick<World, "network" | "clock">) {
  return (subject: string, data: Uint8Array, headers: PublishOptions["headers"]): void => {
    const afterMs = TASKS.test(subject) ? network.copiedAfterMs() : null;
    if (afterMs === null) return;
    clock.setTimer(afterMs, () => {
      bus.publish(subject, data, headers && { headers }).catch(() => {});
    });
  };
}

function answeredOverNetwork(process: SimProcess, place: string, message: BusMessage): BusMessage {
  const { subject, data, headers, deliveries, storedAtMs } = message;
  return {
    ...{ subject, data, headers, deliveries, storedAtMs },
    ack: () => process.send(place, () => message.ack()),
    retry: (delayMs) => process.send(place, () => message.retry(delayMs)),
  };
}
