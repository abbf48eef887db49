import { isClean } from "../../audit/audit-report.ts";
import { auditTwice } from "../../audit/audit-twice.ts";
import { conductorSettingNames } from "../../audit/conductor-setting-names.ts";
import { auditText } from "../../audit/print-report.ts";
import type { AuditedCloud } from "../../audit/read-cloud.ts";
import { eventually } from "../rigs/eventually.ts";

const PATIENT = { everyMs: 250, withinMs: 60_000 };

/**
 * Waits until nothing is in progress and the audit of the six laws finds nothing. Otherwise throws with the last findings. `look` reads the
 * cloud and the guests that run on its hosts at this moment.
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
