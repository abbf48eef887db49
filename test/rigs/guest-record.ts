import type { GuestRecord } from "../../adapters/qemu/guest-record.ts";
import type { VirtualMachine } from "../../adapters/qemu/virtual-machine.ts";

const MACHINE: VirtualMachine = {
  name: "t/0",
  uuid: "6f1f2ad0-7d3c-4d0b-8f0e-0c9b6a8c0001",
  machineType: "pc-q35-7.2",
  accel: "tcg",
  cpuModel: "qemu64",
  vcpus: 1,
  memoryMib: 16,
  disks: [{ node: "disk0", file: "disk0.qcow2" }],
  configDrive: null,
  interfaces: [],
  kernel: null,
};

/** The record of a guest that was never started. */
export function guestRecord(changes: Partial<GuestRecord> = {}): GuestRecord {
  return {
    host: "h",
    serverUuid: "s",
    attemptId: "t/0",
    machine: MACHINE,
    baseSha512: "",
    hasRun: false,
    runningIn: null,
    isSuspended: false,
    receives: null,
    listensAt: "",
    handedTo: null,
    ...changes,
  };
}
