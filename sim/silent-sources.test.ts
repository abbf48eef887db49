import { beforeEach, expect, test } from "vitest";
import { SilentSources } from "./silent-sources.ts";
import type { CopyOfServer } from "./sim-cell.ts";

let copies: CopyOfServer[];
let sources: SilentSources;
beforeEach(() => {
  copies = [{ attemptId: "build/0" } as CopyOfServer];
  sources = new SilentSources(() => copies);
  sources.handedOver("build/0", "move/0", { serverUuid: "server", agent: "agent-1", host: "host-2" });
});

test("a destination that has received everything is destroyed while its source is silent", () => {
  expect(sources.destroyed("server")).toContain("guest of server server that had received everything is destroyed");
  expect(sources.destroyed("server")).toBe(null);
});

test("a destination may be destroyed when its source was heard of, or a user wants that, and others always", () => {
  sources.handedOver("build/0", "move/1", { serverUuid: "other", agent: "agent-2", host: "host-2" });
  sources.heard("agent-1");
  expect(sources.destroyed("server")).toBe(null);
  sources.unwanted("other");
  expect(sources.destroyed("other")).toBe(null);
  sources.handedOver("build/0", "move/2", { serverUuid: "other", agent: "agent-2", host: "host-2" });
  expect(sources.destroyed("other")).toBe(null);
  sources.handedOver("build/0", "build/0", { serverUuid: "server", agent: "agent-1", host: "host-2" });
  expect(sources.destroyed("server")).toBe(null);
});

test("a destination whose host an operator has forced down may be destroyed", () => {
  const toldDown = new Set<string>();
  sources = new SilentSources(
    () => copies,
    () => toldDown,
  );
  for (const host of ["host-2", "host-3"]) {
    toldDown.add("host-3");
    sources.handedOver("build/0", "move/0", { serverUuid: "server", agent: "agent-1", host });
    expect(sources.destroyed("server") === null).toBe(host === "host-3");
  }
});

test("a destination whose guest has moved on may be destroyed, and the next one not while its own source is silent", () => {
  sources.handedOver("move/0", "move/1", { serverUuid: "server", agent: "agent-2", host: "host-3" });
  copies = [{ attemptId: "move/1" } as CopyOfServer];
  expect(sources.destroyed("server")).toBe(null);
  copies = [];
  expect(sources.destroyed("server")).toContain("its source (agent-2) is silent");
});
