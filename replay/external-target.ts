import { readCellRecords } from "../adapters/postgres/api/cell-records.ts";
import { auditTwice } from "../audit/audit-twice.ts";
import { conductorSettingNames } from "../audit/conductor-setting-names.ts";
import { Outcomes } from "./outcomes.ts";
import { AUDIT_PAUSE_MS, type ReplayTarget } from "./target.ts";

/** A running cloud, reached through its public API and, for the audit, its API database. */
export function externalTarget(options: {
  readonly apiUrl: string;
  readonly databaseUrl: string | null;
}): ReplayTarget {
  const { apiUrl, databaseUrl } = options;
  return {
    apiUrl,
    isHere: false,
    outcomes: new Outcomes(),
    claims: () => null,
    // Others may use the cloud, too, so it never becomes idle. The audit reports only persistent violations.
    settle: async () => {},
    async audit() {
      if (databaseUrl === null) return null;
      return auditTwice({
        apiUrl: databaseUrl,
        cells: await readCellRecords(databaseUrl),
        pauseMs: AUDIT_PAUSE_MS,
        // Others may use the cloud at the same time.
        patienceMs: 30_000,
        conductorSettings: conductorSettingNames,
      });
    },
    close: async () => {},
  };
}
