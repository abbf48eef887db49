import { expect, test } from "vitest";
import { overUnifiedLimit } from "./over-quota.ts";

test("a call over unified limits is told each of them by its name in Keystone, in the order of the names", () => {
  const amounts = { cores: 3, instances: 2, ram: 512 };
  const asked = { cores: 1, instances: 1, ram: 64, classes: new Map([["DISK_GB", 20]]) };
  const classes = [{ name: "DISK_GB", limit: 30, used: 11 }];
  const excess = { overs: ["instances", "cores"] as const, limits: amounts, used: amounts, classes, fitting: 0 };
  expect(overUnifiedLimit(excess, asked, "p")).toMatchObject({
    status: 403,
    message:
      "Project p is over a limit for [Resource class:DISK_GB is over limit of 30 due to current usage 11 and delta 20, " +
      "Resource class:VCPU is over limit of 3 due to current usage 3 and delta 1, " +
      "Resource servers is over limit of 2 due to current usage 2 and delta 1]",
  });
});
