import { expect, test } from "vitest";
import { explainUnknownExtraSpec } from "./known-extra-specs.ts";

test("names in Nova's namespaces must be known, and others are anybody's", () => {
  const unknown = ["hw:zz", "os:zz", "quota:x", "trait:custom", "resources_1:a", "capabilities:zz", "hw:numa_cpus.x"];
  for (const name of unknown)
    expect(explainUnknownExtraSpec(name, "1")).toBe(
      `Validation failed; extra spec '${name}' does not appear to be a valid extra spec.`,
    );
  for (const name of ["zz", "vendor:zz", "hwx:zz", "constructor", "hw"])
    expect(explainUnknownExtraSpec(name, "1")).toBeNull();
});

test.each([
  ["hw:cpu_policy", "mixed"],
  ["hw:mem_page_size", "2MB"],
  ["hw:mem_page_size", "any"],
  ["hw:numa_cpus.0", "0-3,^2"],
  ["hw:numa_mem.1", "512"],
  ["hw:pmem", "A,B"],
  ["hw:boot_menu", " Yes "],
  ["hw:redirected_usb_ports", "15"],
  ["hw:maxphysaddr_mode", "emulate"],
  ["pci_passthrough:alias", "a:1, b:2"],
  ["quota:cpu_quota", "-1"],
  ["quota:disk_read_iops_sec", "100"],
  ["quota:vif_inbound_peak", "100"],
  ["resources1:CUSTOM_GPU", "2"],
  ["resources:VCPU", "0"],
  ["trait_a:HW_CPU_X86_VMX", "forbidden"],
  ["capabilities:cpu_info:features", "<in> aes"],
  ["aggregate_instance_extra_specs:ssd", "true"],
  ["group_policy", "none"],
  ["accel:device_profile", "any"],
])("%s=%s is taken", (name, value) => {
  expect(explainUnknownExtraSpec(name, value)).toBeNull();
});

test.each([
  ["hw:cpu_policy", "zz", "is not one of: dedicated, shared, mixed."],
  ["hw:boot_menu", "perhaps", "is not a valid boolean-like value."],
  ["hw:numa_nodes", "0", "is less than the min value of '1'."],
  ["hw:numa_nodes", "1.5", "is not a valid integer value."],
  ["hw:redirected_usb_ports", "16", "is greater than the max value of '15'."],
  ["resources:VCPU", "x", "is not a valid integer value."],
  ["trait:CUSTOM_A", "yes", "is not one of: required, forbidden."],
  ["hw:cpu_dedicated_mask", "0-", "is not of the format '\\^?\\d+(?:-\\d+|,\\^?\\d+)*'."],
])("%s=%s is refused in Nova's words", (name, value, fault) => {
  expect(explainUnknownExtraSpec(name, value)).toBe(`Validation failed; '${value}' ${fault}`);
});

test("long values that nearly fit are refused, too", () => {
  for (const name of ["hw:cpu_dedicated_mask", "hw:cpu_realtime_mask", "hw:pmem", "pci_passthrough:alias"])
    for (const piece of ["1-1,", "1,", "11", "1,1-1", "a", "a:1, ", " "])
      expect(explainUnknownExtraSpec(name, `${piece.repeat(255).slice(0, 255)}!`)).not.toBeNull();
});
