import { clientCalls, isAnswer } from "../report/client-calls.ts";
import { type Checker, type Finding, outcomeOf } from "./checker.ts";

/** No two creates got the same server, and no list contains a server twice. */
export const noServerTwice: Checker = {
  name: "no server twice",
  check(history) {
    const findings: Finding[] = [];
    const creates = new Map<string, number>();
    for (const { op, id, server, toMs } of clientCalls(history)) {
      if (op !== "create" || server === null) continue;
      const other = creates.get(server);
      creates.set(server, id);
      if (other !== undefined)
        findings.push({
          atMs: toMs ?? 0,
          server,
          what: `requests ${other} and ${id} were both given server ${server}`,
        });
    }
    for (const line of history) {
      if (!isAnswer(line)) continue;
      for (const server of line.twice ?? [])
        findings.push({ atMs: line.atMs, server, what: `list ${line.id} names server ${server} more than once` });
    }
    return outcomeOf(findings);
  },
};
