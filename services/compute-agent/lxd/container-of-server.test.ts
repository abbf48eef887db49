import { describe, expect, test } from "vitest";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { containerName, containerOf, expectedLxdImageOf } from "./container-of-server.ts";

const GUEST = { host: "h1", serverUuid: "s1", attemptId: "t1/0" };
const DEFAULTS = { storagePool: "fast", bridge: null };
const FLAVOR = {
  ...{ id: "f", name: "f", vcpus: 2, memoryMib: 512, diskGib: 3 },
  ...{ ephemeralGib: 0, swapMib: 0, extraSpecs: {} },
};

describe("the container of a server", () => {
  test("has a name that LXD allows, which differs by host and attempt", () => {
    const names = [GUEST, { ...GUEST, host: "h2" }, { ...GUEST, attemptId: "t1/1" }].map(containerName);
    for (const name of names) expect(name).toMatch(/^[a-z][a-z0-9-]{1,62}$/);
    expect(new Set(names).size).toBe(3);
    expect(containerName(GUEST)).toBe(names[0]);
  });

  test("has the flavor's limits, its disk in the storage pool, and names its server and attempt", () => {
    const { config, devices } = containerOf(serverSpec(1, { flavor: FLAVOR }), GUEST, DEFAULTS);
    expect(config).toMatchObject({
      ...{
        "limits.cpu": "2",
        "limits.memory": "512MiB",
        "limits.processes": "4096",
        "boot.autostart": "false",
        "security.devlxd": "false",
      },
      ...{ "user.berth.host": "h1", "user.berth.server": "s1", "user.berth.attempt": "t1/0" },
    });
    expect(devices).toEqual({ root: { type: "disk", path: "/", pool: "fast", size: "3GiB" } });
  });

  test("has the CPUs that are chosen for it: its own, or as much time of the shared ones as its flavor has CPUs", () => {
    const limits = (vcpus: readonly (readonly number[])[], held: readonly number[]) => {
      const pinning = { vcpus, held, emulator: [], memory: [], isBound: false, pageKib: null };
      const { config } = containerOf(serverSpec(1, { flavor: FLAVOR }), GUEST, { ...DEFAULTS, pinning });
      return [config["limits.cpu"], config["limits.cpu.allowance"], config["user.berth.held-cpus"]];
    };
    expect(limits([[1]], [1])).toEqual(["1-1", undefined, "1"]);
    expect(limits([[4], [2]], [2, 3, 4])).toEqual(["2-4", undefined, "2-4"]);
    expect(limits([[0, 8], [5]], [5])).toEqual(["0,5,8", undefined, "5"]);
    const shared = [0, 1, 8, 9];
    expect(limits([shared, shared], [])).toEqual(["0-1,8-9", "200ms/100ms", undefined]);
    expect(limits([shared, shared, shared, shared], [])).toEqual(["0-1,8-9", undefined, undefined]);
  });

  test("has an interface for each port where there is a bridge, and none without", () => {
    const ports = [{ portId: "p1", networkId: "n1" }];
    const server = serverSpec(1, { flavor: FLAVOR, ports: ports as never });
    expect(containerOf(server, GUEST, { ...DEFAULTS, bridge: "br0" }).devices.eth0).toMatchObject({
      ...{ type: "nic", nictype: "bridged", parent: "br0", hwaddr: expect.stringMatching(/^fa:16:3e:/) },
    });
    expect(Object.keys(containerOf(server, GUEST, DEFAULTS).devices)).toEqual(["root"]);
  });

  test("gives user data, host name and key to cloud-init, so that no value can add another key", () => {
    const change = { hostname: 'a"\nroot: x', publicKey: "ssh-ed25519 AAAA me\n", userData: btoa("#!/bin/sh\n") };
    const { config } = containerOf(serverSpec(1, { flavor: FLAVOR, ...change }), GUEST, DEFAULTS);
    expect(config["cloud-init.user-data"]).toBe("#!/bin/sh\n");
    expect(config["cloud-init.vendor-data"]).toBe(
      '#cloud-config\nhostname: "a\\"\\nroot: x"\nssh_authorized_keys: ["ssh-ed25519 AAAA me"]\n',
    );
  });

  test("gives files to cloud-init, so that no path can add another key", () => {
    const files = [{ path: '/etc/motd"\nroot: x', contents: btoa("hello") }];
    const { config } = containerOf(serverSpec(1, { flavor: FLAVOR, files }), GUEST, DEFAULTS);
    expect(config["cloud-init.vendor-data"]).toBe(
      '#cloud-config\nwrite_files: [{"path":"/etc/motd\\"\\nroot: x","encoding":"b64","content":"aGVsbG8="}]\n',
    );
  });

  test.each([
    ["no VCPU", { flavor: { ...FLAVOR, vcpus: 0 } }],
    ["an ephemeral disk", { flavor: { ...FLAVOR, ephemeralGib: 1 } }],
    ["swap", { flavor: { ...FLAVOR, swapMib: 1 } }],
  ])("is refused for a flavor with %s", (_, change) => {
    expect(() => containerOf(serverSpec(1, change), GUEST, DEFAULTS)).toThrow(/flavor/);
  });

  test("is checked against the image's hash, if the cloud knows it", () => {
    const imageProperties = { os_hash_algo: "sha512", os_hash_value: "ABCD".repeat(32) };
    const sha512 = "abcd".repeat(32);
    expect(expectedLxdImageOf(serverSpec(1, { imageRef: "i", imageProperties }))).toEqual({ id: "i", sha512 });
    const wrong = { ...imageProperties, os_hash_value: "/../../../../proc/kcore" };
    expect(() => expectedLxdImageOf(serverSpec(1, { imageRef: "i", imageProperties: wrong }))).toThrow("is no SHA-512");
    expect(expectedLxdImageOf(serverSpec(1, { imageRef: "i", imageProperties: {} })).sha512).toBeNull();
    expect(() => expectedLxdImageOf(serverSpec(1, { imageRef: "" }))).toThrow("needs an image");
  });
});
