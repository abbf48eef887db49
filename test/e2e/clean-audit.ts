import { isClean } from "../../cli/audit/audit-report.ts";
import { auditTwice } from "../../cli/audit/audit-twice.ts";
import { conductorSettingNames } from "../../cli/audit/conductor-setting-names.ts";
import { auditText } from "../../cli/audit/print-report.ts";
import type { AuditedCloud } from "../../cli/audit/read-cloud.ts";
import { eventually } from "../eventually.ts";

const PATIENT = { everyMs: 250, withinMs: 60_000 };

/**
 * Waits until nothing is in flight any more and the audit of the six laws finds nothing; else throws with what it last found. `look`: the
 * cloud, with what runs on its hosts at this moment.
 */
export async function expectCleanAudit(look: () => Promise<Pick<AuditedCloud, "apiUrl" | "cells">>): Promise<void> {
  let last = "";
  const clean = async () => {
    const report = await auditTwice({
      ...(await look()),
      pauseMs: 0,
      patienceMs: 0,
      conductorSettings: conductorSettingNames,
    });
    last = auditText(report);
    return isClean(report);
  };
  await eventually("a clean audit", clean, PATIENT).catch((error: Error) => {
    throw new Error(`${error.message}: ${last}`);
  });
}
