import { createSocket } from "node:dgram";
import { copyFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { writeConfigDrive } from "../../../adapters/qemu/config-drive.ts";
import { NANO_IMAGE_ID } from "../../../adapters/qemu/nano-image.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { volumeOf } from "../../../test/rigs/begin-operation.ts";
import { eventually } from "../../../test/rigs/eventually.ts";
import { linuxGuestFiles } from "../../../test/rigs/linux-guest.ts";
import {
  guestsOnDisk,
  makeQemuGuestsDir,
  NANO_FLAVOR,
  type QemuGuestsDir,
  qemuDriverIn,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import type { GuestName } from "../journal.ts";
import { guestMetadataOf } from "./machine-of-server.ts";
import type { QemuDriver } from "./qemu-driver.ts";

const NEVER = new AbortController().signal;
const PATIENT = { everyMs: 50, withinMs: 90_000 };
const CACHE = join(import.meta.dirname, "../../../node_modules/.cache/berth-linux-guest");
const files = whyNoQemu() === null ? linuxGuestFiles(CACHE) : null;
const title = `a guest with Linux${files === null ? " (skipped: no QEMU, or apt-get cannot download a kernel)" : ""}`;

/** A service on an address of the host that answers by TCP, and notes what it is asked by UDP on the same port. */
async function listenOn(
  address: "127.0.0.1" | "::1",
): Promise<{ readonly port: number; readonly asked: readonly string[] }> {
  const service = createServer((socket) => {
    // QEMU resets connections when its guest is destroyed.
    socket.on("error", () => undefined).end("secret of the host\n");
  });
  await new Promise<void>((resolve) => service.listen(0, address, resolve));
  const { port } = service.address() as AddressInfo;
  const asked: string[] = [];
  const datagrams = createSocket(address === "::1" ? "udp6" : "udp4", (message) =>
    asked.push(message.toString("latin1")),
  );
  await new Promise<void>((resolve) => datagrams.bind(port, address, resolve));
  onTestFinished(() => {
    service.close();
    datagrams.close();
  });
  return { port, asked };
}

describe.skipIf(files === null)(title, () => {
  let dir: QemuGuestsDir;
  let driver: QemuDriver;
  beforeEach(() => {
    dir = makeQemuGuestsDir();
    driver = qemuDriverIn(dir, { volumeDir: dir.volumes });
    copyFileSync(files?.kernel ?? "", join(dir.images, "kernel"));
    copyFileSync(files?.ramdisk ?? "", join(dir.images, "ramdisk"));
  });
  afterEach(async () => {
    driver.close();
    await dir.remove();
  });

  /** Starts a server whose guest carries out a script of busybox. */
  async function booted(index: number, script: string, spec: Partial<ServerSpec> = {}): Promise<GuestName> {
    const server = serverSpec(index, {
      ...{ name: "web", imageRef: NANO_IMAGE_ID, flavor: { ...NANO_FLAVOR, memoryMib: 128 } },
      imageProperties: { kernel_id: "kernel", ramdisk_id: "ramdisk", os_command_line: "console=ttyS0 quiet panic=-1" },
      userData: Buffer.from(script).toString("base64"),
      ...spec,
    });
    const name = { host: "h1", serverUuid: server.uuid, attemptId: `task-${index}/0` };
    const order = { ...name, server, allocation: undefined, movedFrom: null };
    const outcome = await driver.prepare(order, { signal: NEVER, onStep: () => undefined });
    expect(outcome).toEqual({ kind: "prepared" });
    await driver.start(name, NEVER);
    return name;
  }
  const shown = (guest: GuestName) => guestsOnDisk(dir.path, guest.serverUuid)[0]?.console ?? "";
  const shows = (guest: GuestName, line: RegExp) => eventually(`${line}`, () => line.test(shown(guest)), PATIENT);

  test("boots with its own kernel and reads its config drive", async () => {
    const script = 'echo "hello from user data"\n/bin/busybox cat /config/openstack/content/0000\necho\n';
    const guest = await booted(1, script, {
      ...{ keyName: "mine", publicKey: "ssh-ed25519 AAAA me" },
      files: [{ path: "/etc/motd", contents: Buffer.from("a file of its own").toString("base64") }],
    });
    await shows(guest, /^done$/m);
    expect(shown(guest)).toMatch(/^hello from user data$/m);
    expect(shown(guest)).toMatch(/^a file of its own$/m);
    const metadata = JSON.parse(/^meta: (.*)$/m.exec(shown(guest))?.[1] ?? "{}") as unknown;
    expect(metadata).toMatchObject({
      ...{ uuid: guest.serverUuid, name: "web", hostname: "web", meta: { role: "web" } },
      keys: [{ name: "mine", type: "ssh", data: "ssh-ed25519 AAAA me" }],
      files: [{ path: "/etc/motd", content_path: "/content/0000" }],
    });
  });

  test("reads the files of its config drive at the metadata address, also after the agent was replaced", async () => {
    const get = "$b wget -q -O - http://169.254.169.254";
    // A request that is under way when the agent is replaced gets no answer, and this client would wait for it for a quarter of an hour.
    const getAgain = get.replace("$b", "$b timeout 5 $b");
    const script = `b=/bin/busybox
$b ip link set eth0 up
echo '#!/bin/busybox sh
[ "$1" = bound ] && /bin/busybox ip addr add $ip/$mask dev eth0' > /bound && $b chmod 755 /bound
$b udhcpc -i eth0 -n -q -s /bound
for file in meta_data.json network_data.json user_data; do
  ${get}/openstack/2018-08-27/$file > /got && $b cmp /got /config/openstack/latest/$file && echo "same: $file"
done
echo "id: $(${get}/latest/meta-data/instance-id)"
${get}/openstack/latest/password || echo "no password"
until ${getAgain}/openstack/content/0000; do $b sleep 1; done
echo
`;
    const port = { portId: "6a9ff9cb-c9d8-4d6c-8f3f-0a4f0d0f2b01", networkId: "n1", tag: "", networkName: "" };
    const guest = await booted(1, script, { ports: [{ ...port, addresses: [], floatingAddresses: [], slot: 1 }] });
    await shows(guest, /^no password$/m);
    for (const file of ["meta_data.json", "network_data.json", "user_data"])
      expect(shown(guest)).toContain(`same: ${file}\n`);
    expect(shown(guest)).toContain(`id: i-${guest.serverUuid.replaceAll("-", "").slice(0, 17)}\n`);
    expect(shown(guest)).not.toMatch(/^done$/m);

    driver.close();
    await writeConfigDrive(join(guestsOnDisk(dir.path, guest.serverUuid)[0]?.dir ?? "", "config.iso"), {
      ...guestMetadataOf(serverSpec(1)),
      files: [{ path: "/etc/motd", contents: Buffer.from("given by the next agent") }],
    });
    driver = qemuDriverIn(dir);
    await driver.adopt([{ ...guest, state: "running" }]);
    expect(await driver.powersOf([guest])).toEqual(["running"]);
    await shows(guest, /^done$/m);
    expect(shown(guest)).toMatch(/^given by the next agent$/m);
  });

  test.each(["isolated", "open"] as const)(
    "reaches services on the host's loopback addresses, by IPv4, IPv6, TCP and UDP, only in a network that is open (%s)",
    async (userNetwork) => {
      driver.close();
      driver = qemuDriverIn(dir, { userNetwork, volumeDir: dir.volumes });
      const [four, six] = [await listenOn("127.0.0.1"), await listenOn("::1")];
      // The gateway, the name server, and any other address of the networks; then packets to the loopback addresses themselves.
      const script = `b=/bin/busybox
$b ip link set eth0 up
echo '#!/bin/busybox sh
[ "$1" = bound ] && /bin/busybox ip addr add $ip/$mask dev eth0' > /bound && $b chmod 755 /bound
$b udhcpc -i eth0 -n -q -s /bound
echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad
$b ip -6 addr add fec0::15/64 dev eth0
$b sleep 2
$b ip -6 addr show dev eth0
try() { echo "$1: $($b nc -w 6 $1 $2 < /dev/null || echo nothing)"; }
ask() { $b timeout 3 $b tftp -g -r $1 -l /dev/null $1 $2; }
for address in 169.254.2.2 169.254.2.3 169.254.7.7; do try $address ${four.port} & ask $address ${four.port} & done
for address in fec0::2 fec0::3 fec0::77; do try $address ${six.port} & ask $address ${six.port} & done
wait
echo 1 > /proc/sys/net/ipv4/conf/eth0/route_localnet
$b ip route del table local local 127.0.0.0/8
$b ip route del table local local 127.0.0.1
$b ip route add 127.0.0.1 via 169.254.2.2 dev eth0
$b ip -6 addr del ::1/128 dev lo
$b ip -6 route add ::1/128 via fec0::2 dev eth0
try 127.0.0.1 ${four.port} & try ::1 ${six.port} &
wait
echo "id: $($b wget -q -O - http://169.254.169.254/latest/meta-data/instance-id)"
`;
      const portId = "6a9ff9cb-c9d8-4d6c-8f3f-0a4f0d0f2b01";
      const ports = [
        { portId, networkId: "n1", tag: "", networkName: "", addresses: [], floatingAddresses: [], slot: 1 },
      ];
      const guest = await booted(1, script, { ports });
      await eventually("done", () => /^done$/m.test(shown(guest)), { ...PATIENT, withinMs: 300_000 });
      expect(shown(guest)).toMatch(/^id: i-[0-9a-f]{17}$/m);
      // The guest has the address, so what follows is a network's refusal.
      expect(shown(guest)).toContain("fec0::15/64");
      for (const address of ["169.254.2.2", "127.0.0.1", "fec0::2"])
        expect(shown(guest)).toContain(`${address}: ${userNetwork === "open" ? "secret of the host" : "nothing"}\n`);
      const asked = [...four.asked, ...six.asked];
      if (userNetwork === "isolated") expect([shown(guest).includes("secret of the host"), asked]).toEqual([false, []]);
      else
        expect(asked.map((text) => text.replace(/[^\w:.]+/g, " ").trim())).toEqual(
          expect.arrayContaining([expect.stringContaining("169.254.2.2"), expect.stringContaining("fec0::2")]),
        );
    },
  );

  test("gets an interface while it runs, and releases it again", async () => {
    const count = "$($b grep -l 0x020000 /sys/bus/pci/devices/*/class | $b wc -l)";
    const waits = (wanted: number) =>
      `while [ "${count}" != ${wanted} ]; do $b sleep 1; done\necho "interfaces: ${wanted}"`;
    const guest = await booted(
      1,
      `b=/bin/busybox\n$b mount -t sysfs sys /sys\necho "begins with ${count}"\n${[1, 2, 1, 0].map(waits).join("\n")}\n`,
    );
    await shows(guest, /^begins with 0$/m);
    const [one, other] = [1, 2].map((slot) => ({ portId: `6a9ff9cb-c9d8-4d6c-8f3f-0a4f0d0f2b0${slot}`, slot }));
    if (one === undefined || other === undefined) throw new Error("there are two interfaces");
    const steps = [[one], [one, other], [other], []] as const;
    for (const [at, interfaces] of steps.entries()) {
      await driver.setInterfaces(guest, interfaces, NEVER);
      const shownAs = new RegExp(`^interfaces: ${interfaces.length}$`, "gm");
      const expected = steps.slice(0, at + 1).filter(({ length }) => length === interfaces.length).length;
      const seen = () => [...shown(guest).matchAll(shownAs)].length === expected;
      await eventually(`${interfaces.length} interfaces in the guest`, seen, PATIENT);
    }
    expect(await driver.powersOf([guest])).toEqual(["running"]);
  });

  test("writes to a volume that is attached while it runs, and another guest reads the data after the detachment", async () => {
    const volume = volumeOf(1);
    const serial = 'echo "serial: $($b cat /sys/block/sda/device/vpd_pg80 | $b tail -c 36)"';
    const appears = "b=/bin/busybox\n$b mount -t sysfs sys /sys\nwhile ! [ -b /dev/sda ]; do $b sleep 1; done";
    const writer = await booted(
      1,
      `${appears}
${serial}
echo "kept by the volume" | $b dd of=/dev/sda conv=fsync 2>/dev/null && echo "the data are written"
while [ -b /dev/sda ]; do $b sleep 1; done
echo "the disk is gone"
`,
    );
    await shows(writer, /^meta: /m);
    await driver.attachVolume(writer, volume, NEVER);
    await shows(writer, /^the data are written$/m);
    expect(shown(writer)).toContain(`serial: ${volume.volumeId}\n`);
    await driver.detachVolume(writer, volume.volumeId, NEVER);
    await shows(writer, /^the disk is gone$/m);

    const reader = await booted(2, `${appears}\n${serial}\necho "found: $($b head -n 1 /dev/sda)"\n`, {
      volumes: [volume],
    });
    await shows(reader, /^done$/m);
    expect(shown(reader)).toContain(`serial: ${volume.volumeId}\n`);
    expect(shown(reader)).toContain("found: kept by the volume\n");
    expect(await driver.powersOf([writer, reader])).toEqual(["running", "running"]);
  });
});
