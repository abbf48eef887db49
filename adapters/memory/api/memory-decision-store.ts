import {
  DECISIONS_OF_SERVER_MAX,
  type DecisionLimits,
  type DecisionRecord,
  type DecisionStore,
} from "../../../core/stores/api/decision-store.ts";

/** The in-process twin of the table of decisions. */
export class MemoryDecisionStore implements DecisionStore {
  #records: readonly DecisionRecord[] = [];

  async putDecisions(records: readonly DecisionRecord[]): Promise<void> {
    this.#records = [...this.#records, ...structuredClone(records)];
  }

  async decisionsOf(serverUuid: string): Promise<readonly DecisionRecord[]> {
    const own = this.#records.filter((record) => record.serverUuid === serverUuid);
    return own.reverse().slice(0, DECISIONS_OF_SERVER_MAX);
  }

  async purgeDecisions({ beforeMs, recordsMax }: DecisionLimits): Promise<number> {
    const before = this.#records.length;
    this.#records = this.#records.slice(Math.max(0, before - recordsMax)).filter(({ atMs }) => atMs >= beforeMs);
    return before - this.#records.length;
  }
}
