import { NANO_IMAGE_ID } from "../../../adapters/qemu/nano-image.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import { driverContract } from "../../../test/contract/driver.contract.ts";
import type { DriverSubject } from "../../../test/contract/driver-scene.ts";
import {
  makeQemuGuestsDir,
  NANO_DEFAULTS,
  NANO_FLAVOR,
  qemuDriverIn,
  whyNoQemu,
} from "../../../test/rigs/qemu-guests.ts";
import type { Driver } from "../driver.ts";
import type { GuestName } from "../journal.ts";

const HOSTS = ["h1", "h2"] as const;
const server = (index: number) => serverSpec(index, { flavor: NANO_FLAVOR, imageRef: NANO_IMAGE_ID });

/** Two hosts that see the same directory of guests. */
async function withSharedDisks(): Promise<DriverSubject> {
  const dir = makeQemuGuestsDir();
  const open = () => qemuDriverIn(dir, { volumeDir: dir.volumes });
  let driver = open();
  return {
    hosts: HOSTS,
    open: async () => {
      driver.close();
      driver = open();
      return driver;
    },
    server,
    close: () => dir.remove(),
  };
}

/** The guests of these hosts have displays. */
const DISPLAYS = { hasDisplays: true, defaults: async () => ({ ...NANO_DEFAULTS, display: "vga" as const }) };

/** Two hosts with a directory each and shared volumes, whose guests have displays. */
async function withOwnDisks(): Promise<DriverSubject> {
  const dirs = { h1: makeQemuGuestsDir(), h2: makeQemuGuestsDir() };
  const options = { ...DISPLAYS, volumeDir: dirs.h1.volumes };
  const open = () => ({ h1: qemuDriverIn(dirs.h1, options), h2: qemuDriverIn(dirs.h2, options) });
  let drivers = open();
  return {
    hosts: HOSTS,
    open: async () => {
      for (const host of HOSTS) drivers[host].close();
      drivers = open();
      return byHost((host) => drivers[host as "h1" | "h2"]);
    },
    server,
    close: async () => {
      for (const host of HOSTS) await dirs[host].remove();
    },
  };
}

/** One driver for a test, which passes each call to the driver of its host. */
function byHost(of: (host: string) => Driver): Driver {
  const among = <Guest extends GuestName>(guests: readonly Guest[], host: string) =>
    guests.filter((one) => one.host === host);
  return {
    capabilities: of(HOSTS[0]).capabilities,
    traits: of(HOSTS[0]).traits,
    watch: (onChanged) => {
      for (const host of HOSTS) of(host).watch(onChanged);
    },
    hostedGuests: async (hosts, known) => {
      const asked = HOSTS.filter((host) => hosts.has(host));
      const found = await Promise.all(asked.map((host) => of(host).hostedGuests(new Set([host]), known)));
      return found.flat();
    },
    adopt: async (guests) => {
      for (const host of HOSTS) await of(host).adopt(among(guests, host));
    },
    powersOf: async (guests) => {
      const found = await Promise.all(guests.map((guest) => of(guest.host).powersOf([guest])));
      return found.flat();
    },
    prepare: (order, control) => of(order.host).prepare(order, control),
    start: (guest, signal) => of(guest.host).start(guest, signal),
    power: (guest, verb, signal, wanted) => of(guest.host).power(guest, verb, signal, wanted),
    addInterfaces: (guest, interfaces, signal) => of(guest.host).addInterfaces(guest, interfaces, signal),
    handOff: (order, signal, onProgress) => of(order.host).handOff(order, signal, onProgress),
    snapshot: (guest, imageId, signal) => of(guest.host).snapshot(guest, imageId, signal),
    openConsole: (guest) => of(guest.host).openConsole(guest),
    hasDisplay: (guest) => of(guest.host).hasDisplay(guest),
    pinningOf: (guest) => of(guest.host).pinningOf(guest),
    measure: (guest) => of(guest.host).measure(guest),
    openDisplay: (guest) => of(guest.host).openDisplay(guest),
    rescue: (guest, image, signal) => of(guest.host).rescue(guest, image, signal),
    attachVolume: (guest, volume, signal) => of(guest.host).attachVolume(guest, volume, signal),
    detachVolume: (guest, volumeId, signal) => of(guest.host).detachVolume(guest, volumeId, signal),
    changeVolume: (guest, volume, step, signal) => of(guest.host).changeVolume(guest, volume, step, signal),
    setInterfaces: (guest, interfaces, signal) => of(guest.host).setInterfaces(guest, interfaces, signal),
    readConsole: (guest, bytesMax) => of(guest.host).readConsole(guest, bytesMax),
    destroy: (guest, signal) => of(guest.host).destroy(guest, signal),
  };
}

driverContract("of virtual machines on shared disks", withSharedDisks, { whySkipped: whyNoQemu() });
driverContract("of virtual machines on disks of their own", withOwnDisks, { whySkipped: whyNoQemu() });
