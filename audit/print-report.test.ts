import { expect, test } from "vitest";
import type { AuditReport } from "./audit-report.ts";
import { auditText } from "./print-report.ts";

function firstLineOf(counts: AuditReport["counts"], cells: readonly string[]): string | undefined {
  return auditText({ violations: [], cells, unread: {}, unreadGuests: {}, unreadCinder: null, counts }).split("\n")[0];
}

test("uses the singular for a count of one", () => {
  const one = { providers: 1, consumers: 1, servers: 1, requests: 1, hosts: 1, hostsAsked: 1, attachments: null };
  expect(firstLineOf(one, ["a"])).toBe(
    "audit of 1 cell: 1 provider, 1 consumer, 1 server, 1 request not deleted, 1 host asked for guests",
  );
  const two = { providers: 2, consumers: 0, servers: 2, requests: 3, hosts: 4, hostsAsked: 5, attachments: null };
  expect(firstLineOf(two, ["a", "b"])).toBe(
    "audit of 2 cells: 2 providers, 0 consumers, 2 servers, 3 requests not deleted, 5 hosts asked for guests",
  );
});
