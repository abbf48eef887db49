import { describe, expect, it } from "vitest";
import { ManualClock } from "../../../runtime/manual-clock.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { GroupPicks } from "./group-picks.ts";

const EXPIRY_MS = 1_000;
const of = (server: number, policy: string, maxServerPerHost = 0) =>
  serverSpec(server, { group: { uuid: `group of ${policy}`, policy, maxServerPerHost } });

describe("GroupPicks", () => {
  it("names the hosts that an anti-affinity group has filled, without the server's own", () => {
    const picks = new GroupPicks(new ManualClock(0), EXPIRY_MS);
    for (const server of [1, 2, 3]) picks.pick(of(server, "anti-affinity", 2), "a", server < 3 ? "h1" : "h2");
    expect(picks.adviceFor(of(4, "anti-affinity", 2)).full).toEqual(new Map([["a", new Set(["h1"])]]));
    expect(picks.adviceFor(of(1, "anti-affinity", 2)).full).toEqual(new Map());
    picks.drop(of(2, "anti-affinity", 2));
    expect(picks.adviceFor(of(4, "anti-affinity", 2)).full).toEqual(new Map());
  });

  it("advises an affinity group to join its other servers, until their picks have expired", () => {
    const clock = new ManualClock(0);
    const picks = new GroupPicks(clock, EXPIRY_MS);
    picks.pick(of(1, "affinity"), "a", "h1");
    expect(picks.adviceFor(of(1, "affinity")).pinned).toBeNull();
    expect(picks.adviceFor(of(2, "affinity")).pinned).toEqual({ cell: "a", hosts: ["h1"] });
    clock.advance(EXPIRY_MS + 1);
    expect(picks.adviceFor(of(2, "affinity")).pinned).toBeNull();
  });

  it("gives no advice for soft groups and for servers without a group", () => {
    const picks = new GroupPicks(new ManualClock(0), EXPIRY_MS);
    picks.pick(of(1, "soft-affinity"), "a", "h1");
    picks.pick(serverSpec(2), "a", "h1");
    for (const spec of [of(3, "soft-affinity"), serverSpec(4)])
      expect(picks.adviceFor(spec)).toEqual({ pinned: null, full: new Map() });
  });
});
