import { type Journal, JournalError, type JournalRecord } from "./journal.ts";

/** The content that a memory journal leaves behind when its agent "dies". A test gives it to the next agent. */
export interface MemoryDisk {
  records: JournalRecord[];
}

/** The in-process twin of the journal on disk, for tests and replays. */
export function createMemoryJournal(disk: MemoryDisk = { records: [] }): Journal {
  let closed = false;
  const open = <Value>(act: () => Value): Promise<Value> =>
    closed ? Promise.reject(new JournalError("closed", "the journal is closed")) : Promise.resolve(act());
  return {
    load: () => open(() => [...disk.records]),
    append: (record) =>
      open(() => {
        disk.records.push(record);
      }),
    compact: (survivors) =>
      open(() => {
        disk.records = [...survivors()];
      }),
    get length() {
      return disk.records.length;
    },
    async close() {
      closed = true;
    },
  };
}
