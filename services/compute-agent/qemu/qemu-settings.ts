import {
  boolean,
  directory,
  duration,
  integer,
  type Kind,
  listOf,
  oneOf,
  text,
} from "../../../runtime/setting-kinds.ts";
import { optional, setting, type ValuesOf } from "../../../runtime/settings.ts";

const modelName = text({
  pattern: /^[A-Za-z0-9_.-]+(,[+-]?[A-Za-z0-9_.=-]+)*$/,
  allowed: "a CPU model of QEMU, as Westmere,+aes",
});
const oneModel = text({ pattern: /^[A-Za-z0-9_.-]+$/, allowed: "a CPU model of QEMU, as Haswell-noTSX" });
const cpuFlag: Kind<string> = {
  allowed: "a CPU flag of QEMU, as aes, +aes or -hle",
  placeholder: "FLAG",
  parse: (given) => {
    const [, sign = "", name] = /^([+-]?)([A-Za-z0-9_][A-Za-z0-9_.-]*)$/.exec(given) ?? [];
    return name === undefined ? undefined : `${sign || "+"}${name.toLowerCase()}`;
  },
};
const machineName = text({
  pattern: /^pc-(q35|i440fx)-\d+\.\d+$/,
  allowed: "a machine type with its version, as pc-q35-7.2",
});
const bridgeName = text({ pattern: /^[A-Za-z0-9._-]{1,15}$/, allowed: "the name of a network interface" });
const ipAddress = text({ pattern: /^[0-9a-fA-F:.]+$/, allowed: "an IP address" });

/** The settings of `--driver qemu`. Without it they mean nothing. */
export const qemuSettings = {
  qemu: setting(text(), { about: "QEMU's program", default: "qemu-system-x86_64" }),
  imagesPath: optional(directory, {
    about: "for --driver qemu and lxd: the directory in which images are found under their ids",
  }),
  imageCache: optional(directory, {
    about: "directory of the checked copies of images; otherwise _base in the instances path",
  }),
  volumeDir: optional(directory, {
    about:
      "directory of the files of volumes, the same storage on all hosts of the cell; without it servers have no volumes",
  }),
  volumeMounts: optional(directory, {
    about:
      "directory below which Cinder's NFS exports are mounted, each under the MD5 sum of its name, as for Nova; without it servers have no volumes of Cinder",
  }),
  accel: setting(oneOf("auto", "tcg", "kvm"), {
    about: "how QEMU runs guests; auto takes kvm if this machine's own kernel boots with it",
    default: "auto",
  }),
  cpuModel: optional(modelName, { about: "CPU model of the guests; otherwise qemu64 with tcg, host with kvm" }),
  // The options of these names in Nova's section [libvirt], of which the first is only for the mode `custom`.
  cpuModels: optional(listOf(oneModel), {
    about:
      "instead of one: CPU models, the most common one first; a server gets the first one that has the CPU traits which its flavor requires",
  }),
  cpuModelExtraFlags: optional(listOf(cpuFlag), {
    about: "CPU flags that all guests get beside those of their model (aes or +aes), or do not get (-hle)",
  }),
  machineType: setting(machineName, {
    about: "machine type of the guests, the same on all hosts between which they move",
    default: "pc-q35-7.2",
  }),
  // The option of this name in Nova's section [libvirt].
  liveMigrationInboundAddr: setting(ipAddress, {
    about: "address of this machine at which guests arrive that move here",
    default: "127.0.0.1",
  }),
  // The option of this name in Nova's section [libvirt], where it is false by default, since it needs certificates there.
  liveMigrationWithNativeTls: setting(boolean, {
    about: "whether guests that arrive here are encrypted on their way, with a key for each",
    default: "true",
  }),
  // The option of this name in Nova's section [libvirt].
  liveMigrationBandwidth: setting(integer({ min: 0, max: 1_000_000 }), {
    about: "the limit for the memory of one live move, in MiB a second; 0 is none",
    default: "0",
  }),
  // The option `enabled` of Nova's section [vnc], where it is true by default.
  vncEnabled: setting(boolean, {
    about:
      "whether new guests get a display for graphical consoles, which costs memory; the same on all hosts between which they move",
    default: "false",
  }),
  // Nova: the image property hw_video_model.
  videoModel: setting(oneOf("vga", "virtio"), {
    about:
      "the graphics card of guests with a display, the same on all these hosts; every operating system can use vga",
    default: "vga",
  }),
  // The option of this name in Nova's section [DEFAULT].
  shutdownTimeout: setting(duration({ minMs: 0, maxMs: 50_000 }), {
    about: "how long a guest may take to power off by itself",
    default: "40s",
  }),
  bridge: optional(bridgeName, {
    about:
      "bridge that guests' interfaces are attached to; otherwise virtual machines get QEMU's own network, and containers none",
  }),
  userNetwork: setting(oneOf("isolated", "open"), {
    about:
      "what virtual machines reach in QEMU's own network: isolated, only their metadata; open, all that this machine reaches, and its own services on the loopback address, too",
    default: "isolated",
  }),
} as const;

export type QemuSettings = ValuesOf<typeof qemuSettings>;
