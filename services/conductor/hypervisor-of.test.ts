import { expect, test } from "vitest";
import type { HypervisorReport } from "../../proto/gen/berth/agent.ts";
import { hypervisorOfReport } from "./hypervisor-of.ts";

const report: HypervisorReport = {
  type: "QEMU",
  version: 7_002_000,
  hostIp: "10.0.0.1",
  supportedInstances: [{ architecture: "x86_64", hypervisorType: "kvm", vmMode: "hvm" }],
  metrics: { load: 0.5 },
  cpuInfo: '{"arch":"x86_64","topology":{"cells":2}}',
  bootedAtMs: 1_700_000_000_000,
  node: undefined,
  closedBecause: "",
};

test("accepts what an agent reports about its hypervisor", () => {
  expect(hypervisorOfReport(report)).toEqual({
    type: "QEMU",
    version: 7_002_000,
    hostIp: "10.0.0.1",
    supportedInstances: [["x86_64", "kvm", "hvm"]],
    metrics: { load: 0.5 },
    cpuInfo: { arch: "x86_64", topology: { cells: 2 } },
    bootedAtMs: 1_700_000_000_000,
  });
  const node = { provisionState: "active", powerState: "power on", closedBecause: "it is in use by server a" };
  expect(hypervisorOfReport({ ...report, node })).toMatchObject({ node });
  expect(hypervisorOfReport({ ...report, node: { ...node, closedBecause: "x".repeat(5_000) } })).toMatchObject({
    node: { closedBecause: "x".repeat(1_000) },
  });
  const closedBecause = "the directory of guests /guests has not answered for 15 s or longer";
  expect(hypervisorOfReport({ ...report, closedBecause })).toMatchObject({ closedBecause });
  const told = "\u001b]52;c;cm0gLXJm\u0007 \u009b2J\n";
  const shown = "\ufffd]52;c;cm0gLXJm\ufffd \ufffd2J\ufffd";
  expect(
    hypervisorOfReport({
      ...{ ...report, closedBecause: told },
      node: { provisionState: told, powerState: told, closedBecause: told },
    }),
  ).toMatchObject({
    closedBecause: shown,
    node: { provisionState: shown, powerState: shown, closedBecause: shown },
  });
  expect(hypervisorOfReport(undefined)).toBeUndefined();
  expect(hypervisorOfReport({ ...report, cpuInfo: "" })).toMatchObject({ cpuInfo: {} });
});

test.each([
  [{ cpuInfo: "[]" }, /cpu_info/],
  [{ cpuInfo: "{" }, /cpu_info/],
  [{ cpuInfo: JSON.stringify({ flags: "x".repeat(20_000) }) }, /too long/],
  [{ cpuInfo: `{"a":${"[".repeat(9_000)}${"]".repeat(9_000)}}` }, /nested too deeply/],
  [{ metrics: { load: Number.NaN } }, /metric/],
  [{ metrics: { ["x".repeat(256)]: 1 } }, /longer than 255 characters/],
  [{ node: { provisionState: "x".repeat(256), powerState: "", closedBecause: "" } }, /longer than 255 characters/],
  [{ type: "x".repeat(256) }, /longer than 255 characters/],
  [{ hostIp: "x".repeat(256) }, /longer than 255 characters/],
  [
    { supportedInstances: [{ architecture: "x".repeat(256), hypervisorType: "", vmMode: "" }] },
    /longer than 255 characters/,
  ],
  [{ version: -1 }, /version is -1/],
  [{ type: "a\u0000b" }, /U\+0000/],
  [{ cpuInfo: '{"model":"\\ud800"}' }, /surrogate/],
])("refuses %o", (over, why) => {
  expect(hypervisorOfReport({ ...report, ...over })).toEqual({ refused: expect.stringMatching(why) });
});
