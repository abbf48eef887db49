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
};

test("accepts what an agent reports about its hypervisor", () => {
  expect(hypervisorOfReport(report)).toEqual({
    type: "QEMU",
    version: 7_002_000,
    hostIp: "10.0.0.1",
    supportedInstances: [["x86_64", "kvm", "hvm"]],
    metrics: { load: 0.5 },
    cpuInfo: { arch: "x86_64", topology: { cells: 2 } },
  });
  expect(hypervisorOfReport(undefined)).toBeUndefined();
  expect(hypervisorOfReport({ ...report, cpuInfo: "" })).toMatchObject({ cpuInfo: {} });
});

test.each([
  [{ cpuInfo: "[]" }, /cpu_info/],
  [{ cpuInfo: "{" }, /cpu_info/],
  [{ cpuInfo: JSON.stringify({ flags: "x".repeat(20_000) }) }, /too long/],
  [{ metrics: { load: Number.NaN } }, /metric/],
  [{ type: "a\u0000b" }, /U\+0000/],
  [{ cpuInfo: '{"model":"\\ud800"}' }, /surrogate/],
])("refuses %o", (over, why) => {
  expect(hypervisorOfReport({ ...report, ...over })).toEqual({ refused: expect.stringMatching(why) });
});
