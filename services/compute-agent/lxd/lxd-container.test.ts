import { expect, test } from "vitest";
import { bootId } from "../../../runtime/boot-id.ts";
import { OWN_KEYS } from "./container-of-server.ts";
import { powerOfContainer } from "./lxd-container.ts";

const AN_EARLIER_BOOT = "00000000-0000-0000-0000-000000000000";
const NEVER_RAN = {};
const RAN = { [OWN_KEYS.hasRun]: "true", [OWN_KEYS.runsIn]: bootId() };
const RAN_BEFORE = { ...RAN, [OWN_KEYS.runsIn]: AN_EARLIER_BOOT };

test.each([
  ["that runs", "Running", RAN, "running"],
  ["that is paused", "Frozen", RAN, "paused"],
  ["that never ran", "Stopped", NEVER_RAN, "stopped"],
  ["that was stopped by an order", "Stopped", { [OWN_KEYS.hasRun]: "true" }, "stopped"],
  ["that ended by itself", "Stopped", RAN, "shut-down"],
  ["that ran or was paused when the host ended", "Stopped", RAN_BEFORE, "stopped-with-host"],
  ["that was handed over", "Stopped", { ...RAN_BEFORE, [OWN_KEYS.handedTo]: "task-2/0" }, "stopped"],
  ["that LXD is changing", "Freezing", RAN, "unknown"],
] as const)("a container %s (LXD: %s) is found as such", (_, status, config, power) => {
  const unimportant = { name: "berth-1", devices: {}, architecture: "x86_64", ephemeral: false, profiles: [] };
  expect(powerOfContainer({ ...unimportant, status, config })).toBe(power);
});
