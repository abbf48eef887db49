import { expect, test } from "vitest";
import { type FoundGuest, guestFate } from "./guest-fate.ts";
import type { Home } from "./home.ts";

const guest = (state: FoundGuest["state"]): FoundGuest => ({
  host: "host-a",
  serverUuid: "s",
  attemptId: "t/0",
  state,
});
const home = (
  status: Home["status"],
  host: string | null = "host-a",
  attemptId: string | null = "t/0",
  more: Partial<Home> = {},
): Home => ({
  serverUuid: "s",
  status,
  host,
  attemptId,
  revision: 0,
  busy: false,
  move: null,
  ...more,
});

const here = { host: "host-a", attemptId: "t/0" };
const kept = {
  uuid: "m",
  kind: "resize" as const,
  source: here,
  dest: { host: "host-b", attemptId: "m/0" },
  runs: false,
};
const other = { ...kept, source: { host: "host-b", attemptId: "x/0" } };

test.each([
  ["a server that the cell never had", "prepared", null, "destroy"],
  ["a deleted server", "running", home("DELETED"), "destroy"],
  ["a server that failed and holds nothing", "prepared", home("ERROR", null, null), "destroy"],
  ["a server that went to another host", "prepared", home("BUILD", "host-b", "t/1"), "destroy"],
  ["a server that runs on another host", "running", home("ACTIVE", "host-b", "t/1"), "destroy"],
  ["a later attempt on the same host", "prepared", home("BUILD", "host-a", "t/2"), "destroy"],
  ["a build in flight", "building", home("BUILD"), "leave"],
  ["a build whose home is not committed yet", "prepared", home("BUILD"), "leave"],
  ["a server at home that nobody started", "prepared", home("ACTIVE"), "start"],
  ["a server at home that runs", "running", home("ACTIVE"), "leave"],
  ["a server whose host was down", "stopped", home("ACTIVE"), "start"],
  ["a server that was shut off", "stopped", home("SHUTOFF"), "leave"],
  ["a server that an operation is at", "stopped", home("ACTIVE", "host-a", "t/0", { busy: true }), "leave"],
  ["a move's source, kept for a revert", "stopped", home("VERIFY_RESIZE", "host-b", "m/0", { move: kept }), "leave"],
  [
    "a move's source that was handed over and runs",
    "running",
    home("VERIFY_RESIZE", "host-b", "m/0", { move: kept }),
    "stop",
  ],
  [
    "a move's source that was handed over and runs while the destination is started",
    "running",
    home("ACTIVE", "host-b", "m/0", { move: kept, busy: true }),
    "stop",
  ],
  [
    "a source that is not handed over yet",
    "running",
    home("ACTIVE", "host-a", "t/0", { move: kept, busy: true }),
    "leave",
  ],
  ["a server that was shut off and runs", "running", home("SHUTOFF"), "stop"],
  ["a server that is being started", "running", home("SHUTOFF", "host-a", "t/0", { busy: true }), "leave"],
  ["a server that was shelved and runs", "running", home("SHELVED"), "stop"],
  ["a server that was paused and runs", "running", home("PAUSED"), "pause"],
  ["a server that was paused", "paused", home("PAUSED"), "leave"],
  ["a server that is suspended", "suspended", home("SUSPENDED"), "leave"],
  ["a suspended server that runs", "running", home("SUSPENDED"), "suspend"],
  ["a suspended server whose host has lost its memory", "stopped", home("SUSPENDED"), "leave"],
  ["a server that should run and is suspended", "suspended", home("ACTIVE"), "start"],
  ["a rescued server", "rescued", home("RESCUE"), "leave"],
  ["a rescued server whose host was down", "stopped", home("RESCUE"), "leave"],
  ["a rescued server whose unrescue the database may have forgotten", "running", home("RESCUE"), "leave"],
  ["a server that should run and is rescued", "rescued", home("ACTIVE"), "unrescue"],
  ["a server that is being rescued", "rescued", home("ACTIVE", "host-a", "t/0", { busy: true }), "leave"],
  ["a server that was shut off and is rescued", "rescued", home("SHUTOFF"), "stop"],
  ["a paused server whose guest was rescued", "rescued", home("PAUSED"), "stop"],
  ["a suspended server whose guest was rescued", "rescued", home("SUSPENDED"), "stop"],
  ["a server in ERROR whose guest is rescued", "rescued", home("ERROR"), "leave"],
  ["a rescued source that was handed over", "rescued", home("ACTIVE", "host-b", "m/0", { move: kept }), "stop"],
  [
    "an ended move's destination that is rescued and is not home",
    "rescued",
    home("ERROR", "host-b", "x/0", { move: { ...other, dest: here } }),
    "destroy",
  ],
  ["a rescued guest that is not at home", "rescued", home("ACTIVE", "host-b", "m/0"), "destroy"],
  ["a paused server whose host was down", "stopped", home("PAUSED"), "leave"],
  ["a server that should run and is paused", "paused", home("ACTIVE"), "start"],
  [
    "a stopped server that was resized and runs",
    "running",
    home("VERIFY_RESIZE", "host-a", "t/0", { move: kept }),
    "stop",
  ],
  ["a server in ERROR that is at home", "running", home("ERROR"), "leave"],
  [
    "a host that is being evacuated and is back",
    "running",
    home("ACTIVE", "host-b", "m/0", { move: { ...kept, kind: "evacuate" }, busy: true }),
    "stop",
  ],
  ["an evacuated host that is back", "stopped", home("ACTIVE", "host-b", "m/0"), "destroy"],
  ["a move's destination", "prepared", home("ACTIVE", "host-b", "x/0", { move: { ...kept, dest: here } }), "leave"],
  [
    "an open move's destination that runs, which the move may make home at any moment",
    "running",
    home("ACTIVE", "host-b", "x/0", { move: { ...other, dest: here }, busy: true }),
    "leave",
  ],
  [
    "an ended move's destination that runs and is not home",
    "running",
    home("ERROR", "host-b", "x/0", { move: { ...other, dest: here } }),
    "destroy",
  ],
  ["an earlier destination of a move", "prepared", home("ACTIVE", "host-b", "x/0", { move: other }), "destroy"],
  ["a resized server", "stopped", home("VERIFY_RESIZE", "host-a", "t/0", { move: { ...kept, runs: true } }), "start"],
] as const)("a guest of %s (%s)", (_, state, row, fate) => {
  expect(guestFate(guest(state), row)).toBe(fate);
});

test.each([
  ["crashed", "ACTIVE", "stop-server"],
  ["crashed", "PAUSED", "stop-server"],
  ["crashed", "VERIFY_RESIZE", "leave"],
  ["host-restarted", "ACTIVE", "stop-server"],
  ["host-restarted", "PAUSED", "stop-server"],
  ["halted-with-host", "PAUSED", "stop-server"],
  // Its guest was halted by a full disk, say, and nobody has paused the server.
  ["halted-with-host", "ACTIVE", "start"],
  ["halted-with-host", "VERIFY_RESIZE", "start"],
  ["halted-with-host", "SHUTOFF", "leave"],
  ["halted-with-host", "SUSPENDED", "leave"],
  ["halted-with-host", "RESCUE", "leave"],
] as const)("a guest that stopped by itself (%s) and whose server is %s: %s", (cause, status, fate) => {
  const row = home(status, "host-a", "t/0", { move: status === "VERIFY_RESIZE" ? { ...kept, runs: true } : null });
  expect(guestFate({ ...guest("stopped"), cause }, row)).toBe(fate);
});
