import type { RequestFilter } from "../translation-rule.ts";

const PREFIXES: Readonly<Record<string, string>> = {
  hw_cdrom_bus: "COMPUTE_STORAGE_BUS",
  hw_disk_bus: "COMPUTE_STORAGE_BUS",
  hw_video_model: "COMPUTE_GRAPHICS_MODEL",
  hw_vif_model: "COMPUTE_NET_VIF_MODEL",
  hw_architecture: "HW_ARCH",
  hw_emulation_architecture: "COMPUTE_ARCH",
  hw_viommu_model: "COMPUTE_VIOMMU",
};

/** Requires hosts that support the bus, video, network and IOMMU models and the architecture that the image names. */
export const imageModels: RequestFilter = ({ imageProperties }, draft, { settings }) => {
  if (!settings.imageMetadataPrefilter) return null;
  for (const [key, prefix] of Object.entries(PREFIXES)) {
    const model = imageProperties[key];
    if (model) draft.requireOfRoot(`${prefix}_${model.toUpperCase().replaceAll("-", "_")}`);
  }
  return null;
};
