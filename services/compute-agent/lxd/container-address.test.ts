import { describe, expect, test } from "vitest";
import { formatContainerAddress, parseContainerAddress, TAKES_NO_DISK } from "./container-address.ts";

const KEY = "ab".repeat(32);

describe("the address of a container that waits for a disk", () => {
  test.each(["192.0.2.7", "2001:db8::7", "host-7.example"])("names the LXD, the agent and the key (%s)", (host) => {
    const address = { lxd: "f1".repeat(32), host, port: 4_711, key: KEY };
    expect(parseContainerAddress(formatContainerAddress(address))).toEqual(address);
  });

  test("is none for a container that takes nothing", () => {
    expect(parseContainerAddress(TAKES_NO_DISK)).toBeNull();
  });

  test.each([
    ["an empty one", "", "did not say"],
    ["that of an older agent", `lxd:${"f1".repeat(32)}`, "agents of this version"],
    ["one of another driver", `qemu://192.0.2.7/?memory=1&key=${KEY}`, "not the address of a container"],
    ["one without a port", `lxd://192.0.2.7/?lxd=f1&key=${KEY}`, "not the address of a container"],
    ["one with a wrong key", "lxd://192.0.2.7:1/?lxd=f1&key=secret", "not the address of a container"],
  ])("refuses %s, and quotes no key", (_, text, reason) => {
    const parse = () => parseContainerAddress(text);
    expect(parse).toThrow(reason);
    expect(parse).not.toThrow(/secret|abab/);
  });
});
