import { expect, test } from "vitest";
import { type Guest, GuestState, type Hello } from "../../proto/gen/berth/agent.ts";
import { guestsFault, helloFault } from "./hello-fault.ts";

const guest: Guest = {
  serverUuid: "s",
  attemptId: "t/0",
  state: GuestState.GUEST_STATE_RUNNING,
  revision: 1,
  stopCause: "",
  files: [],
  heardRevision: 0,
  found: false,
};
const hello = (over: Partial<Hello["hosts"][number]> = {}, agentId = "a"): Hello => ({
  agentId,
  hosts: [
    { host: "h0", guests: [], incarnation: "" },
    { host: "h1", guests: [guest], incarnation: "", ...over },
  ],
});

test("accepts a guest whose server has had orders since an agent lied about its revision", () => {
  expect(helloFault(hello({ guests: [{ ...guest, revision: 1_000_000_100 }] }))).toBeNull();
});

test("refuses a guest that says it was given an order which no server has", () => {
  expect(guestsFault([{ ...guest, heardRevision: 2_000_000_001 }])).toContain("was given order 2000000001");
});

test("accepts a hello whose texts the database can store", () => {
  expect(helloFault(hello())).toBeNull();
  expect(helloFault(hello({ cell: "c1" }))).toBeNull();
  expect(helloFault({ agentId: "a", hosts: [] })).toBeNull();
});

test.each([
  [hello({}, "a\0"), /^"a\\u0000" is not an agent id$/],
  [hello({}, ""), /^"" is not an agent id$/],
  [hello({ host: "h1\0" }), /^"h1\\u0000" is not the name of a host$/],
  [hello({ host: "h".repeat(501) }), /is not the name of a host$/],
  [hello({ cell: "" }), /^host h1: "" is not the name of a cell$/],
  [hello({ cell: "c\0" }), /^host h1: "c\\u0000" is not the name of a cell$/],
  [hello({ incarnation: "\0" }), /^host h1: .* is not the incarnation/],
  [hello({ guests: [guest, { ...guest, serverUuid: "s\0" }] }), /^host h1: .* is not the id of a server$/],
  [hello({ guests: [{ ...guest, attemptId: "\0" }] }), /^host h1: .* is not the id of an attempt$/],
  [hello({ guests: [{ ...guest, revision: 2 ** 31 }] }), /^host h1: guest t\/0 has obeyed order 2147483648/],
  [hello({ guests: Array.from({ length: 10_001 }, () => guest) }), /^host h1: 10001 guests are listed; at most 10000/],
  [hello({ guests: [{ ...guest, revision: -1 }] }), /obeyed order -1/],
])("says what is wrong with a hello that no database can be asked about: %#", (said, fault) => {
  expect(helloFault(said)).toMatch(fault);
});

test("checks the guests of a list in the same way", () => {
  expect(guestsFault([guest])).toBeNull();
  expect(guestsFault([guest, { ...guest, attemptId: "\0" }])).toMatch(/is not the id of an attempt$/);
});
