import { expect, test } from "vitest";
import { SERVER_STATUSES } from "../../../../core/tasks/server.ts";
import type { KnownServer } from "../../cells/hydrate-servers.ts";
import { powerStateOf, statusesInPowerState, statusesInVmState, VM_STATES } from "./shown-state.ts";

const known = (status: (typeof SERVER_STATUSES)[number], unreachable = false) =>
  ({ server: { status }, unreachable }) as KnownServer;

test("each status is among the statuses of its own state and power state, and of no other", () => {
  const states = new Set(Object.values(VM_STATES));
  const powers = new Set(SERVER_STATUSES.map((status) => powerStateOf(known(status))));
  for (const status of SERVER_STATUSES) {
    expect([...states].filter((state) => statusesInVmState(state).includes(status))).toEqual([VM_STATES[status]]);
    const power = powerStateOf(known(status));
    const found = [...powers].filter((one) => statusesInPowerState(String(one)).includes(status));
    expect(found).toEqual(power === 0 ? [] : [power]);
  }
});

test("no statuses are those of power state 0, which servers of silent cells have, or of an unknown state", () => {
  expect(powerStateOf(known("SHUTOFF", true))).toBe(0);
  expect(statusesInPowerState("0")).toEqual([]);
  expect(statusesInPowerState("9")).toEqual([]);
  expect(statusesInVmState("SHUTOFF")).toEqual([]);
});
