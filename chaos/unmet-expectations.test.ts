import { describe, expect, test } from "vitest";
import { ChaosHistory } from "./chaos-history.ts";
import { type ChaosServer, newServer } from "./chaos-server.ts";
import type { Expectation } from "./plan.ts";
import { figuresOfRound } from "./round-figures.ts";
import { unmet } from "./unmet-expectations.ts";

const NOTHING: Expectation = { errors: null, active: null, unknown: null, slowestMs: null, aloneMs: null };
let count = 0;

function serverOf(over: Partial<ChaosServer> = {}): ChaosServer {
  count += 1;
  const ended = {
    uuid: `uuid-${count}`,
    create: "accepted",
    state: "ACTIVE",
    endedMs: 1_500,
    acceptedMs: 500,
  } as const;
  return { ...newServer(`server-${count}`, "client-1", 400), ...ended, host: "cell1-agent-1-host-1", ...over };
}

function unmetOf(expectation: Partial<Expectation>, servers: readonly ChaosServer[], history = new ChaosHistory()) {
  return unmet({ ...NOTHING, ...expectation }, figuresOfRound("", servers, null), servers, history);
}

const failed = () => serverOf({ state: "ERROR", fault: "No valid host" });

test("figures count servers by outcome, and servers that hold allocations without being ACTIVE", () => {
  const [active, error, stuck] = [serverOf(), failed(), serverOf({ state: "open", endedMs: null })];
  const servers = [active, error, stuck, serverOf({ create: "unknown", uuid: null }), serverOf({ lost: true })];
  const holders = [active.uuid, error.uuid, "somebody else's"].flatMap((uuid) => uuid ?? []);
  expect(figuresOfRound("one", servers, holders)).toMatchObject({
    ...{ asked: 5, accepted: 4, unknown: 1, active: 1, error: 1, stuck: 1, lost: 1, held: 1, slowestMs: 1_000 },
    errors: { "No valid host": 1 },
  });
});

test("stuck or lost servers always fail the expectations, and so does a round without accepted servers", () => {
  expect(unmetOf({}, [serverOf()])).toEqual([]);
  expect(unmetOf({}, [serverOf({ state: "open" })])).toEqual(["1 servers did not end"]);
  expect(unmetOf({}, [serverOf({ lost: true })])).toEqual(["1 accepted servers are lost"]);
  expect(unmetOf({}, [])).toEqual(["no server was accepted"]);
});

test.each<[Partial<Expectation>, RegExp]>([
  [{ errors: 0 }, /^1 servers in ERROR, expected 0$/],
  [{ active: 0.6 }, /^1 of 2 servers are ACTIVE, expected 60 %$/],
  [{ slowestMs: 900 }, /^the slowest took 1\.0 s, expected 0\.9 s/],
])("%j is missed", (expectation, message) => {
  expect(unmetOf(expectation, [serverOf(), failed()])).toEqual([expect.stringMatching(message)]);
});

test("servers that were deleted need not be ACTIVE", () => {
  expect(unmetOf({ active: 1 }, [serverOf(), serverOf({ state: "DELETED", deleting: "accepted" })])).toEqual([]);
});

describe("a cell that was cut off", () => {
  function cutFrom(beginMs: number, endMs: number): { readonly history: ChaosHistory; readonly epochMs: number } {
    const history = new ChaosHistory();
    const fault = { who: "nemesis", fault: "cut", faultId: 1, target: "above → cell1-postgres, cell1-nats" } as const;
    history.write({ ...fault, what: "fault-begins", atMs: beginMs });
    history.write({ ...fault, what: "fault-ends", atMs: endMs });
    return { history, epochMs: Date.now() - history.now() };
  }
  const elsewhere = () =>
    serverOf({ invokedMs: 12_000, acceptedMs: 12_100, endedMs: 14_000, host: "cell2-agent-1-host-1" });

  test("finishes its own builds, and other cells take new servers", () => {
    const { history, epochMs } = cutFrom(10_000, 30_000);
    const inside = serverOf({ acceptedMs: 8_000, endedMs: 31_000, launchedAtMs: epochMs + 12_000 });
    expect(unmetOf({ aloneMs: 5_000 }, [inside, elsewhere()], history)).toEqual([]);
  });

  test("is reported when it finished its builds only after the cut", () => {
    const { history, epochMs } = cutFrom(10_000, 30_000);
    const inside = serverOf({ acceptedMs: 8_000, endedMs: 31_000, launchedAtMs: epochMs + 30_500 });
    expect(unmetOf({ aloneMs: 5_000 }, [inside, elsewhere()], history)).toEqual([
      "1 builds of cell1 waited while it was cut off",
    ]);
  });

  test("is reported when no other cell took a server", () => {
    const { history } = cutFrom(10_000, 30_000);
    expect(unmetOf({ aloneMs: 5_000 }, [serverOf()], history)).toEqual([
      expect.stringMatching(/^no server that was requested/),
    ]);
  });
});
