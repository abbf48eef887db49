import { type Asked, MULTIATTACH_TRAIT } from "./asked.ts";
import { agreedFlag, agreedRequest, hardwareRequest } from "./hardware-request.ts";
import type { RequestRefusal } from "./request-refusal.ts";
import type { TranslationRule } from "./translation-rule.ts";

/** Options whose value alone selects the host's trait. A value without a trait adds nothing. */
const BY_CHOICE: readonly {
  readonly name: string;
  readonly prefix?: string;
  readonly traits: Readonly<Record<string, string | null>>;
}[] = [
  {
    name: "secure_boot",
    prefix: "os",
    traits: { required: "COMPUTE_SECURITY_UEFI_SECURE_BOOT", optional: null, disabled: null },
  },
  {
    name: "maxphysaddr_mode",
    traits: { passthrough: "COMPUTE_ADDRESS_SPACE_PASSTHROUGH", emulate: "COMPUTE_ADDRESS_SPACE_EMULATED" },
  },
  {
    name: "sound_model",
    traits: {
      virtio: "COMPUTE_SOUND_MODEL_VIRTIO",
      usb: null,
      ac97: null,
      es1370: null,
      ich6: null,
      ich9: null,
      pcspk: null,
      sb16: null,
    },
  },
];

/** Boolean options, with the trait of hosts that support them. */
const BY_FLAG: Readonly<Record<string, string>> = {
  virtio_packed_ring: "COMPUTE_NET_VIRTIO_PACKED",
  ephemeral_encryption: "COMPUTE_EPHEMERAL_ENCRYPTION",
  firmware_stateless: "COMPUTE_SECURITY_STATELESS_FIRMWARE",
};

/**
 * Requires traits for what the host's driver must support: secure boot, address size, sound, packed virtqueues, encrypted disks, stateless
 * firmware, accelerators (`accel:device_profile`), volumes that several servers may have. They are required of the root, because drivers report them there.
 */
export const driverCapabilities: TranslationRule = (asked, draft) => {
  for (const { name, prefix, traits } of BY_CHOICE) {
    const read = agreedRequest(hardwareRequest(asked, name, prefix), Object.keys(traits));
    if (read.kind !== "request") return read;
    const wanted = read.value === null ? null : traits[read.value];
    if (wanted) draft.requireOfRoot(wanted);
  }
  for (const [name, wanted] of Object.entries(BY_FLAG)) {
    const read = agreedFlag(hardwareRequest(asked, name));
    if (read.kind !== "request") return read;
    if (read.value === true) draft.requireOfRoot(wanted);
  }
  if (asked.flavor.extraSpecs["accel:device_profile"]) draft.requireOfRoot("COMPUTE_ACCELERATORS");
  if (asked.sharesVolumes === true) draft.requireOfRoot(MULTIATTACH_TRAIT);
  return encryptionFormat(asked, (name) => draft.requireOfRoot(name));
};

function encryptionFormat(asked: Asked, require: (name: string) => void): RequestRefusal | null {
  const wanted = agreedFlag(hardwareRequest(asked, "ephemeral_encryption"));
  const format = agreedRequest(hardwareRequest(asked, "ephemeral_encryption_format"), ["luks", "luksv2", "plain"]);
  if (format.kind !== "request") return format;
  if (wanted.kind === "request" && wanted.value === true && format.value !== null)
    require(`COMPUTE_EPHEMERAL_ENCRYPTION_${format.value.toUpperCase()}`);
  return null;
}
