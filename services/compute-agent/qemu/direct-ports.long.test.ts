import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { NANO_IMAGE_ID } from "../../../adapters/qemu/nano-image.ts";
import { findRunningQemu } from "../../../adapters/qemu/running-qemu.ts";
import type { AllocationRequest } from "../../../proto/gen/berth/shared.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import {
  guestsOnDisk,
  makeQemuGuestsDir,
  NANO_FLAVOR,
  type QemuGuestsDir,
  qemuDriverIn,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import { standInQemu, usableCard, VFS } from "../../../test/rigs/stand-in-devices.ts";
import type { PrepareOrder } from "../driver.ts";
import type { QemuDriver } from "./qemu-driver.ts";
import type { QemuDriverOptions } from "./qemu-driver-options.ts";

const NEVER = new AbortController().signal;
const PLACE = { provider: "card", resourceClass: "SRIOV_NET_VF", addresses: VFS, mdev: null };
const NAME = { host: "h1", serverUuid: serverSpec(1).uuid, attemptId: "task-1/0" };

describe.skipIf(whyNoQemu() !== null)(
  `the virtual function of a guest's direct port${whyNoQemu() === null ? "" : " (skipped: no QEMU)"}`,
  () => {
    let dir: QemuGuestsDir;
    let driver: QemuDriver;
    const guestDir = () => join(dir.instancesPath, "guest-task-1+0");
    function prepare(moved: Partial<PrepareOrder>) {
      const order = { ...NAME, server: spec(), movedFrom: null, allocation: { items: [], mappings: {} }, ...moved };
      return driver.prepare(order, { signal: NEVER, onStep: () => undefined });
    }
    const programOf = () => readFileSync(`/proc/${findRunningQemu(guestDir())?.pid}/cmdline`, "latin1").split("\0");
    const ticks = () =>
      eventually("the guest to tick", () =>
        guestsOnDisk(dir.path, NAME.serverUuid).some((one) => one.attemptId === NAME.attemptId && one.ticks.length > 0),
      );
    const oneVf: AllocationRequest["items"] = [{ provider: "card", resourceClass: "SRIOV_NET_VF", amount: 1 }];

    const PORT = "0a1e0000-7075-4000-8000-00000000000a";
    const MAC = "fa:16:3e:00:00:0a";
    const SET = `ip link set dev ens1f0 vf 0 mac ${MAC} vlan 105`;
    const CLEARED = "ip link set dev ens1f0 vf 0 mac 00:00:00:00:00:00 vlan 0";
    const DISTRUSTED = "ip link set dev ens1f0 vf 0 trust off";
    const vif = { type: "hw_veb", details: '{"vlan":"105"}', vnicType: "direct", profile: "{}" };
    const port = {
      ...{ portId: PORT, networkId: "n", tag: "", networkName: "", addresses: [], slot: 0, floatingAddresses: [] },
      macAddress: MAC,
    };
    const request = {
      portId: PORT,
      suffix: "_PORT0",
      resources: { SRIOV_NET_VF: 1 },
      requiredTraits: [],
      provider: "",
      groupId: "",
    };
    const allocation = { items: oneVf, mappings: { _PORT0: "card" } };
    const asked = { portId: PORT, slot: 1, macAddress: MAC };
    /** The programs that were run for the network card. */
    let ran: string[];
    let refused: string | null;
    beforeEach(() => {
      dir = makeQemuGuestsDir();
      ran = [];
      refused = null;
    });
    afterEach(async () => {
      driver.close();
      await dir.remove();
    });
    const runProgram = async (program: string, args: readonly string[]) => {
      ran.push([program, ...args].join(" "));
      if (refused !== null) throw new Error(refused);
    };
    function openedWith(options: Partial<QemuDriverOptions> = {}): void {
      const layoutOf = () => ({ places: [], cores: [], devices: [PLACE] });
      const fakes = { sysroot: usableCard(), program: standInQemu(dir), runProgram };
      driver = qemuDriverIn(dir, { layoutOf, shutdownMs: 200, ...fakes, ...options });
    }
    const spec = (values: object = {}) =>
      serverSpec(1, {
        ...{ flavor: NANO_FLAVOR, imageRef: NANO_IMAGE_ID, portRequests: [request] },
        ports: [{ ...port, vif }],
        ...values,
      });
    const prepareDirect = (moved: Partial<PrepareOrder> = {}) => prepare({ allocation, ...moved });
    const deviceOption = () => programOf().find((option) => option.startsWith("pci-testdev"));

    test("has the port's MAC address and VLAN before it starts, in the slot of the port's interface, and no other interface", async () => {
      openedWith();
      expect(await prepareDirect()).toMatchObject({ kind: "prepared" });
      expect(ran).toEqual([SET, DISTRUSTED]);
      expect(deviceOption()).toBe(`pci-testdev,id=port-${PORT},bus=slot1`);
      expect(programOf().join(" ")).not.toContain("virtio-net");
      await driver.start(NAME, NEVER);
      await ticks();
      // Another agent may have been killed before it could set them.
      expect(ran).toEqual([SET, DISTRUSTED, SET, DISTRUSTED]);
      expect(driver.pinningOf(NAME)?.devices).toMatchObject([{ address: VFS[0], port: { portId: PORT, slot: 1 } }]);
    });

    test("loses them when it is stopped, gets them again when it is started, also by another agent, and loses them when it is destroyed", async () => {
      openedWith();
      await prepareDirect();
      await driver.start(NAME, NEVER);
      await driver.power(NAME, "stop", NEVER);
      expect(ran.splice(0).slice(4)).toEqual([CLEARED, DISTRUSTED]);
      driver.close();
      openedWith();
      await driver.power(NAME, "start", NEVER);
      expect(ran.splice(0)).toEqual([SET, DISTRUSTED]);
      await driver.destroy(NAME);
      expect(ran).toEqual([CLEARED, DISTRUSTED]);
    });

    test("is not built, and not started, where the card does not take them, and the reason names the port", async () => {
      openedWith();
      refused = "ip link: RTNETLINK answers: Operation not permitted";
      const reason = `could not get the MAC address ${MAC} and the VLAN 105 of port ${PORT}`;
      const outcome = await prepareDirect();
      expect(outcome).toEqual({ kind: "failed", failure: "reschedule", reason: expect.stringContaining(reason) });
      expect(findRunningQemu(guestDir())).toBeNull();
      // The card must have forgotten the port before another guest gets the function.
      await expect(driver.destroy(NAME)).rejects.toThrow("keeps the MAC address and the VLAN");
      refused = null;
      await driver.destroy(NAME);
      await prepareDirect();
      await driver.start(NAME, NEVER);
      await driver.power(NAME, "stop", NEVER);
      refused = "ip link: RTNETLINK answers: Invalid argument";
      await expect(driver.power(NAME, "start", NEVER)).rejects.toThrow(reason);
      expect(findRunningQemu(guestDir())).toBeNull();
    });

    test("is refused where Neutron binds the port in another way, and where the claim has no function for it", async () => {
      openedWith();
      const ovs = spec({ ports: [{ ...port, vif: { ...vif, type: "ovs" } }] });
      expect(await prepareDirect({ server: ovs })).toMatchObject({
        reason: expect.stringContaining("is bound as ovs"),
      });
      const unclaimed = spec({ portRequests: [] });
      expect(await prepareDirect({ server: unclaimed, allocation: { items: [], mappings: {} } })).toMatchObject({
        reason: expect.stringContaining(
          `port ${PORT} has the VNIC type direct, and the server's claim has no virtual function`,
        ),
      });
      expect(ran).toEqual([]);
    });

    test("does not keep its guest from being stopped or moved where the card does not clear it, until the guest is destroyed", async () => {
      const kept: string[] = [];
      openedWith({
        onFunctionsKept: (guest, error) => kept.push(`${JSON.stringify(guest)}: ${(error as Error).message}`),
      });
      await prepareDirect();
      await driver.start(NAME, NEVER);
      refused = "ip link: RTNETLINK answers: Device or resource busy";
      await driver.power(NAME, "stop", NEVER);
      expect(kept).toEqual([
        expect.stringMatching(/"task-1\/0"}: virtual function 0 of ens1f0 .* keeps the MAC address/),
      ]);
      // The order is repeated.
      await driver.power(NAME, "stop", NEVER);
      const to = { host: "h2", serverUuid: NAME.serverUuid, attemptId: "task-2/0" };
      const moved = { ...to, server: spec({ ports: [], portRequests: [] }), allocation: undefined };
      const outcome = await prepare({ ...moved, movedFrom: { ...NAME, by: "migrate" } });
      if (outcome.kind !== "prepared") throw new Error(outcome.reason);
      const order = {
        ...NAME,
        toHost: "h2",
        toAttemptId: to.attemptId,
        listensAt: outcome.listensAt ?? "",
        orderId: "o",
      };
      await driver.handOff({ ...order, live: false, force: false }, NEVER, () => undefined);
      expect(kept).toHaveLength(3);
      await expect(driver.destroy(NAME)).rejects.toThrow("keeps the MAC address");
      refused = null;
      await driver.destroy(NAME);
      expect(ran.slice(-2)).toEqual([CLEARED, DISTRUSTED]);
    });

    test("is cleared when its guest is destroyed although the guest's own record is damaged, also by the next agent", async () => {
      const functionNotes = join(dir.path, "functions.json");
      openedWith({ functionNotes });
      await prepareDirect();
      await driver.start(NAME, NEVER);
      writeFileSync(join(guestDir(), "guest.json"), "{");
      driver.close();
      ran = [];
      openedWith({ functionNotes });
      await driver.adopt([{ ...NAME, state: "running" }]);
      await driver.destroy(NAME);
      expect(ran).toEqual([CLEARED, DISTRUSTED]);
      expect(findRunningQemu(guestDir())).toBeNull();
    });

    test("is cleared although the record of another guest is damaged", async () => {
      openedWith({ onFunctionsKept: (_, error) => expect.fail(String(error)) });
      await prepareDirect();
      await driver.start(NAME, NEVER);
      const damaged = join(dir.instancesPath, "guest-task-9+0");
      mkdirSync(damaged);
      writeFileSync(join(damaged, "guest.json"), "{");
      await driver.power(NAME, "stop", NEVER);
      await driver.destroy(NAME);
      expect(ran.filter((line) => line === CLEARED)).toHaveLength(2);
    });

    test("is left to the guest that moves away until that one has stopped, and starts with what the start order says of the port", async () => {
      openedWith();
      await prepareDirect();
      await driver.start(NAME, NEVER);
      const to = { host: "h2", serverUuid: NAME.serverUuid, attemptId: "task-2/0" };
      const server = spec({ ports: [port] });
      const items = [{ ...oneVf[0]!, provider: "other" }];
      driver.close();
      const other = { ...PLACE, provider: "other", addresses: [VFS[1]] };
      openedWith({ layoutOf: (host) => ({ places: [], cores: [], devices: host === "h2" ? [other] : [PLACE] }) });
      ran = [];
      const move = {
        ...to,
        server,
        movedFrom: { ...NAME, by: "migrate" },
        allocation: { items, mappings: { _PORT0: "other" } },
      };
      const outcome = await prepare(move);
      if (outcome.kind !== "prepared") throw new Error(outcome.reason);
      expect(ran).toEqual([]);
      const { listensAt = "" } = outcome;
      const handOff = {
        ...NAME,
        toHost: "h2",
        toAttemptId: to.attemptId,
        listensAt,
        orderId: "o",
        live: false,
        force: false,
      };
      await driver.handOff(handOff, NEVER, () => undefined);
      expect(ran).toEqual([CLEARED, DISTRUSTED]);
      await expect(driver.start(to, NEVER)).rejects.toThrow("Neutron has not told its VLAN");
      await driver.setInterfaces(to, [{ ...asked, vif: { ...vif, details: '{"vlan":"7"}' } }], NEVER);
      await driver.start(to, NEVER);
      expect(ran.slice(2)).toEqual([
        `ip link set dev ens1f0 vf 1 mac ${MAC} vlan 7`,
        "ip link set dev ens1f0 vf 1 trust off",
      ]);
    });

    test("goes back to the host when the port is detached, and no port can get one later", async () => {
      openedWith();
      await prepareDirect();
      await driver.start(NAME, NEVER);
      await driver.power(NAME, "stop", NEVER);
      ran = [];
      await driver.setInterfaces(NAME, [], NEVER);
      expect(ran).toEqual([CLEARED, DISTRUSTED]);
      expect(driver.pinningOf(NAME)?.devices).toEqual([]);
      await expect(driver.setInterfaces(NAME, [{ ...asked, vif }], NEVER)).rejects.toThrow(
        `the guest has no virtual function for port ${PORT}`,
      );
      await driver.power(NAME, "start", NEVER);
      expect(deviceOption()).toBeUndefined();
    });

    test("keeps an ordinary interface that it has for the port since the time before functions, also at a hard reboot, a detachment of others and a move", async () => {
      openedWith();
      expect(await prepare({ server: spec({ ports: [port], portRequests: [] }) })).toMatchObject({
        kind: "prepared",
      });
      await driver.start(NAME, NEVER);
      await ticks();
      const before = findRunningQemu(guestDir())?.pid;
      await driver.setInterfaces(NAME, [{ ...asked, vif }], NEVER);
      await driver.power(NAME, "hard-reboot", NEVER, [{ ...asked, vif }]);
      expect(findRunningQemu(guestDir())?.pid).not.toBe(before);
      expect(programOf().filter((option) => option.startsWith("virtio-net"))).toEqual([
        expect.stringContaining(`mac=${MAC}`),
      ]);
      const to = { host: "h2", serverUuid: NAME.serverUuid, attemptId: "task-2/0" };
      const server = spec({ portRequests: [] });
      const moved = { ...to, server, movedFrom: { ...NAME, by: "live-migrate" } };
      const outcome = await prepare(moved);
      if (outcome.kind !== "prepared") throw new Error(outcome.reason);
      const { listensAt = "" } = outcome;
      const order = { ...NAME, toHost: "h2", toAttemptId: to.attemptId, listensAt, orderId: "o1" };
      await driver.handOff({ ...order, live: true, force: false }, NEVER, () => undefined);
      await driver.setInterfaces(to, [{ ...asked, vif }], NEVER);
      await driver.start(to, NEVER);
      expect(ran).toEqual([]);
    });

    test.each([
      ["the guest has neither a function nor an interface for it", { vif }, "has no virtual function for port"],
      ["Neutron binds it in another way", { vif: { ...vif, type: "ovs" } }, "is bound as ovs"],
    ])("a hard reboot is refused before the guest ends, if %s", async (_, { vif: told }, reason) => {
      openedWith();
      await prepareDirect();
      await driver.start(NAME, NEVER);
      const before = findRunningQemu(guestDir())?.pid;
      const other = {
        ...asked,
        portId: "0a1e0000-7075-4000-8000-00000000000b",
        macAddress: "fa:16:3e:00:00:0b",
        slot: 2,
      };
      const wanted =
        told.type === "ovs"
          ? [{ ...asked, vif: told }]
          : [
              { ...asked, vif },
              { ...other, vif },
            ];
      await expect(driver.power(NAME, "hard-reboot", NEVER, wanted)).rejects.toThrow(reason);
      expect(findRunningQemu(guestDir())?.pid).toBe(before);
    });
  },
);
