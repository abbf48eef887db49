import type { RequestFilter } from "../translation-rule.ts";

/** The image property that holds the disk format. */
export const DISK_FORMAT_KEY = "disk_format";
const FORMATS: ReadonlySet<string> = new Set([
  "aki",
  "ami",
  "ari",
  "iso",
  "ploop",
  "qcow2",
  "raw",
  "vdi",
  "vhd",
  "vhdx",
  "vmdk",
]);

/** Requires hosts that support the image's disk format (`COMPUTE_IMAGE_TYPE_*`). */
export const imageType: RequestFilter = ({ imageProperties }, draft, { settings }) => {
  const format = imageProperties[DISK_FORMAT_KEY] ?? "";
  if (settings.queryPlacementForImageTypeSupport && FORMATS.has(format))
    draft.requireOfRoot(`COMPUTE_IMAGE_TYPE_${format.toUpperCase()}`);
  return null;
};
