/**
 * The properties of images that servers show, by their common beginning. The two parts of a line make names such as `hw_disk_bus`.
 *
 * Source: the fields of Nova's `ImageMetaProps`, and the older names that it maps to them.
 */
const NAMES: readonly (readonly [beginning: string, ends: string])[] = [
  [
    "",
    "architecture auto_disk_config bdm_v2 bittorrent block_device_mapping cache_in_nova hypervisor_type hypervisor_version_requires ipxe_boot mappings owner_id root_device_name traits_required vm_mode",
  ],
  [
    "hw_",
    "architecture auto_disk_config boot_menu cdrom_bus cpu_cores cpu_max_cores cpu_max_sockets cpu_max_threads cpu_policy cpu_realtime_mask cpu_sockets cpu_thread_policy cpu_threads device_id disk_bus disk_type emulation_architecture ephemeral_encryption ephemeral_encryption_format ephemeral_encryption_secret_uuid firmware_stateless firmware_type floppy_bus input_bus ipxe_boot locked_memory machine_type maxphysaddr_bits maxphysaddr_mode mem_encryption mem_encryption_model mem_page_size numa_cpus numa_mem numa_nodes pci_numa_affinity_policy pmu pointer_model qemu_guest_agent redirected_usb_ports rescue_bus rescue_device rng_model scsi_model serial_port_count sound_model time_hpet tpm_model tpm_version usb_model video_model video_ram vif_model vif_multiqueue_enabled viommu_model virtio_packed_ring vm_mode watchdog_action",
  ],
  [
    "img_",
    "bdm_v2 bittorrent block_device_mapping cache_in_nova compression_level config_drive hide_hypervisor_id hv_requested_version hv_type linked_clone mappings owner_id root_device_name signature signature_certificate_uuid signature_hash_method signature_key_type use_agent version",
  ],
  [
    "os_",
    "admin_user command_line distro require_quiesce secure_boot skip_agent_inject_files_at_boot skip_agent_inject_ssh type",
  ],
  ["vmware_", "disktype image_version linked_clone ostype"],
  ["xenapi_", "device_id image_compression_level skip_agent_inject_ssh use_agent"],
];

const SHOWN: ReadonlySet<string> = new Set(
  NAMES.flatMap(([beginning, ends]) => ends.split(" ").map((end) => `${beginning}${end}`)),
);

/** Returns the properties of a server's image that the server shows: Nova's own ones, and none that an image's owner made up. */
export function shownImageProperties(properties: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(properties).filter(([name]) => SHOWN.has(name)));
}
