import { setImmediate } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import type { HopOutcome } from "../../core/stores/cell/cell-store.ts";
import { AttemptReport, type ConductorMessage, GuestState } from "../../proto/gen/berth/agent.ts";
import { ManualClock } from "../../runtime/manual-clock.ts";
import { dispatchOf, hostName, serverId, taskId } from "../../test/contract/cell-fixtures.ts";
import { BuildRun } from "./build-run.ts";
import type { PluggingOutcome } from "./vif-plugging.ts";

type Ports = ConstructorParameters<typeof BuildRun>[4];

/** A build of server 1 on the hosts 0 and 1 that begins at once, with these ports beside those that do nothing. */
function beginRun(ports: object): BuildRun {
  const { task } = dispatchOf({ server: 1, task: 1, hosts: [0, 1] });
  const { work, server } = task;
  if (work?.$case !== "build" || server === undefined) throw new Error("it is no build");
  const run = new BuildRun(
    { task, epoch: 1, selection: 0, host: hostName(0), attemptId: `${taskId(1)}/0` },
    work.value,
    server,
    { traceparent: "", traceId: "", end: () => {} },
    {
      ...{ clock: new ManualClock(), releaser: {}, store: {}, moved() {}, ended() {}, tell() {} },
      events: { attemptFailed() {}, alternateSkipped() {}, buildEnded() {} },
      settings: { attemptTimeoutMs: 60_000, hostGraceMs: 1_000 },
      ...ports,
    } as unknown as Ports,
  );
  run.begin();
  return run;
}

function report(
  run: BuildRun,
  state: GuestState,
  said: Pick<Partial<AttemptReport>, "reason" | "nothingLeft"> = {},
): void {
  const names = { host: hostName(0), serverUuid: serverId(1), attemptId: `${taskId(1)}/0` };
  run.reported(AttemptReport.fromPartial({ ...names, state, ...said }), 0);
}

async function settle(): Promise<void> {
  for (let turns = 0; turns < 5; turns += 1) await setImmediate();
}

test.each([
  ["may", undefined, "destroy host-0"],
  ["kept", undefined, "look at host-0"],
  ["silent", false, "look at host-0"],
  ["none is needed, since the host says that nothing is left", true, "destroy host-0"],
] as const)(
  "has the guest of a host judged that has failed to build it, before the build goes to another host (verdict: %s)",
  async (verdict, nothingLeft, left) => {
    const done: string[] = [];
    const ports = {
      needs: { meet: () => null },
      streamOf: (host: string) => ({ send: ({ body }: ConductorMessage) => void done.push(`${body?.$case} ${host}`) }),
      guests: {
        mayDestroy: async ({ host, attemptId }: { readonly host: string; readonly attemptId: string }) => {
          done.push(`judge ${host} ${attemptId}`);
          return verdict;
        },
        clear: async ({ host }: { readonly host: string }) => void done.push(`look at ${host}`),
      },
      commits: {
        hop: async ({ toHost }: { readonly toHost: string }): Promise<HopOutcome> => {
          done.push(`hop to ${toHost}`);
          return { kind: "committed" };
        },
      },
    };
    report(beginRun(ports), GuestState.GUEST_STATE_FAILED, { reason: "the disk is full", nothingLeft });
    await settle();
    const judged = nothingLeft === true ? [] : [`judge host-0 ${taskId(1)}/0`];
    const before = ["build host-0", ...judged, "hop to host-1"];
    expect(done.slice(0, before.length)).toEqual(before);
    expect(done.slice(before.length).sort()).toEqual(["build host-1", left].sort());
  },
);

describe("a build whose host is lost while the prepared guest waits for its network", () => {
  let done: string[];
  let clock: ManualClock;
  let isConnected: boolean;
  /** Ends the present wait for the network. */
  let plug: () => void;
  let run: BuildRun;

  const streamTo = (host: string) => ({
    send: ({ body }: ConductorMessage) => void done.push(`${body?.$case} ${host}`),
  });
  let streams: Map<string, ReturnType<typeof streamTo>>;

  beforeEach(async () => {
    done = [];
    clock = new ManualClock();
    isConnected = true;
    streams = new Map([hostName(0), hostName(1)].map((host) => [host, streamTo(host)]));
    run = beginRun({
      clock,
      releaser: { tryRelease: async () => "down" },
      needs: {
        meet: () => null,
        connected: () =>
          new Promise<PluggingOutcome>((resolve) => {
            plug = () => resolve({ kind: "plugged" });
          }),
      },
      streamOf: (host: string) => (isConnected || host !== hostName(0) ? streams.get(host) : null),
      guests: { clear: async ({ host }: { readonly host: string }) => void done.push(`look at ${host}`) },
      commits: {
        commitActive: async () => {
          done.push("ACTIVE");
          return { kind: "committed" };
        },
        hop: async ({ toHost }: { readonly toHost: string }): Promise<HopOutcome> => {
          done.push(`hop to ${toHost}`);
          return { kind: "committed" };
        },
      },
    });
    report(run, GuestState.GUEST_STATE_PREPARED);
    isConnected = false;
    run.hostLost();
  });

  const comeBack = () => {
    isConnected = true;
    streams.set(hostName(0), streamTo(hostName(0)));
    run.hostConnected();
  };

  async function plugWhileLost(): Promise<void> {
    plug();
    await settle();
  }

  test("does not make the server ACTIVE on a host that is back and has not reported the guest again, since it may have lost it", async () => {
    comeBack();
    plug();
    await settle();
    expect(done).not.toContain("ACTIVE");
    report(run, GuestState.GUEST_STATE_PREPARED);
    plug();
    await settle();
    expect(done.slice(-2)).toEqual(["ACTIVE", "start host-0"]);
  });

  test("makes the server ACTIVE on a host that is back and has reported the guest again during the wait", async () => {
    comeBack();
    report(run, GuestState.GUEST_STATE_PREPARED);
    plug();
    await settle();
    expect(done).toEqual(["build host-0", "build host-0", "ACTIVE", "start host-0"]);
  });

  test("goes to the next host when the host is back, its network is there, and it never reports the guest again", async () => {
    comeBack();
    plug();
    await settle();
    clock.advance(121_000);
    await settle();
    expect(done.find((one) => one.startsWith("hop"))).toBe("hop to host-1");
  });

  test("does not make the server ACTIVE there, and goes on when the host has reported the guest again", async () => {
    await plugWhileLost();
    expect(done).toEqual(["build host-0"]);
    isConnected = true;
    run.hostConnected();
    report(run, GuestState.GUEST_STATE_PREPARED);
    await settle();
    expect(done).toEqual(["build host-0", "build host-0"]);
    plug();
    await settle();
    expect(done.slice(2)).toEqual(["ACTIVE", "start host-0"]);
  });

  test("goes to the next host when the grace period is over", async () => {
    await plugWhileLost();
    clock.advance(1_000);
    await settle();
    expect(done.slice(0, 2)).toEqual(["build host-0", "hop to host-1"]);
    expect(done).toContain("build host-1");
  });

  test("goes to the next host when the host is back, and does not answer", async () => {
    await plugWhileLost();
    isConnected = true;
    run.hostConnected();
    clock.advance(121_000);
    await settle();
    expect(done.slice(0, 3)).toEqual(["build host-0", "build host-0", "hop to host-1"]);
  });
});

describe("the limits of an attempt", () => {
  let done: string[];
  let clock: ManualClock;
  let isConnected: boolean;
  let released: Promise<string>;
  let run: BuildRun;

  beforeEach(() => {
    done = [];
    clock = new ManualClock();
    isConnected = true;
    released = Promise.resolve("down");
    const stream = { send: ({ body }: ConductorMessage) => void done.push(body?.$case ?? "") };
    run = beginRun({
      clock,
      releaser: { tryRelease: () => released },
      needs: { meet: () => null },
      streamOf: (host: string) => (isConnected || host !== hostName(0) ? stream : null),
      guests: { mayDestroy: async () => "silent", clear: async () => {} },
      commits: {
        hop: async ({ toHost }: { readonly toHost: string }): Promise<HopOutcome> => {
          done.push(`hop to ${toHost}`);
          return { kind: "committed" };
        },
      },
    });
  });

  async function lose(): Promise<void> {
    isConnected = false;
    run.hostLost();
    await settle();
  }
  async function connect(): Promise<void> {
    isConnected = true;
    run.hostConnected();
    await settle();
  }
  async function pass(ms: number): Promise<void> {
    clock.advance(ms);
    await settle();
  }

  test("a host that is lost and connects again has no more time to build than others", async () => {
    await pass(60_000);
    await lose();
    await connect();
    await pass(60_999);
    expect(done).toEqual(["build", "build"]);
    await pass(1);
    expect(done).toEqual(["build", "build", "hop to host-1", "build"]);
  });

  test("the grace period of a lost host does not begin again when its loss is told twice", async () => {
    await lose();
    await pass(600);
    await lose();
    await pass(399);
    expect(done).toEqual(["build"]);
    await pass(1);
    expect(done).toEqual(["build", "hop to host-1", "build"]);
  });

  test("a host that connects while another conductor is looked for goes on building", async () => {
    const { promise, resolve } = Promise.withResolvers<string>();
    released = promise;
    await lose();
    await pass(1_000);
    await connect();
    resolve("down");
    await settle();
    expect(done).toEqual(["build", "build"]);
  });
});
