import { expect, test } from "vitest";
import { formatTransferAddress, parseTransferAddress, TAKES_NOTHING } from "./transfer-address.ts";

test.each([
  {
    host: "10.0.0.2",
    memoryPort: 49_152,
    disksPort: 10_809,
    base: "ab12",
    display: "vga",
    cpuModel: "Westmere,+aes,-pclmulqdq",
    key: "0f".repeat(32),
    hasVolumeBus: true,
    interfaces: "8:1.3",
    roles: "disk0:root,disk1:swap",
  },
  {
    host: "fd00::2",
    memoryPort: 49_152,
    disksPort: null,
    base: "",
    display: "none",
    cpuModel: "host",
    key: null,
    hasVolumeBus: false,
    interfaces: "",
    roles: null,
  },
  {
    host: "127.0.0.1",
    memoryPort: null,
    disksPort: 1,
    base: "ab12",
    display: null,
    cpuModel: null,
    key: null,
    hasVolumeBus: true,
    interfaces: "8:",
    roles: "",
  },
])("reads back its own address format: $host", (address) => {
  expect(parseTransferAddress(formatTransferAddress(address))).toEqual(address);
});

test("a guest that is built from an image receives nothing", () => {
  expect(parseTransferAddress(TAKES_NOTHING)).toBeNull();
});

test.each([
  ["", "the destination did not say at which address its guest listens"],
  ["fake://h2/task/1", 'listens at "fake://h2/task/1", which is not the address of a QEMU guest'],
  ["10.0.0.2:49152", "which is not the address of a QEMU guest"],
  ["qemu://10.0.0.2/?memory=0", 'the destination\'s port for the memory is "0"'],
  ["lxd://10.0.0.2/?key=secret", 'listens at "lxd://10.0.0.2/", which is not the address of a QEMU guest'],
  ["qemu://10.0.0.2/?memory=1&key=abc%0Ad", "the key of the guest at the destination is malformed"],
  ["qemu://10.0.0.2/?disks=70000", 'the destination\'s port for the disks is "70000"'],
])("refuses %j", (text, message) => {
  expect(() => parseTransferAddress(text)).toThrow(message);
});
