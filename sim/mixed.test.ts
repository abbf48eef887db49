import { expect, test } from "vitest";
import { mixedWorld } from "./mixed.ts";

test("some mixed worlds have a Neutron that goes away and loses drivers, beside the faults of their profile", () => {
  const profiles = Array.from({ length: 200 }, (_, seed) => mixedWorld(seed).profile);
  const withPorts = profiles.filter(({ neutron }) => neutron !== undefined);
  expect(withPorts.length).toBeGreaterThan(10);
  expect(withPorts.length).toBeLessThan(60);
  for (const { faults } of withPorts) expect(faults).toEqual(expect.arrayContaining(["neutron-away", "no-driver"]));
  expect(
    profiles.filter(({ neutron }) => neutron === undefined).some(({ faults }) => faults.includes("no-driver")),
  ).toBe(false);
});
