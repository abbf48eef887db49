import type { Journal, JournalRecord } from "../services/compute-agent/journal.ts";
import { createMemoryJournal, type MemoryDisk } from "../services/compute-agent/memory-journal.ts";
import type { Network } from "./network.ts";
import type { SimProcess } from "./sim-process.ts";

/** An agent's journal on a slow disk. Entries that were not written when the process is killed are lost. */
export function simJournal(process: SimProcess, disk: MemoryDisk, network: Network): Journal {
  const place = `${process.name}-disk`;
  const journal = createMemoryJournal(disk);
  let last: Promise<unknown> = Promise.resolve();
  const inTurn = <Value>(act: () => Promise<Value>): Promise<Value> => {
    const done = last.then(
      () =>
        new Promise<Value>((resolve, reject) => {
          process.clock.setTimer(network.delay(process.name, place), () => act().then(resolve, reject));
        }),
    );
    last = done.catch(() => {});
    return done;
  };
  return {
    load: () => inTurn(() => journal.load()),
    append: (record: JournalRecord) => inTurn(() => journal.append(record)),
    compact: (survivors) => inTurn(() => journal.compact(survivors)),
    get length() {
      return journal.length;
    },
    close: () => inTurn(() => journal.close()),
  };
}
