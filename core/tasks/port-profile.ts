import type { PortDevice } from "../../proto/gen/berth/agent.ts";

/** The profile of a port's binding in Neutron. Users may have written other fields of it. */
type Profile = Readonly<Record<string, unknown>>;

/** The fields about the host's function, as Nova writes them. Source: `_get_pci_device_profile` in nova/network/neutron.py. */
const DEVICE_FIELDS: readonly string[] = ["pci_slot", "pci_vendor_info", "physical_network"];

/** The profile with the function that connects the port on its host. Returns the profile itself if it names the function already. */
export function withDevice(profile: Profile, device: PortDevice | undefined): Profile {
  if (device === undefined) return profile;
  const { pciSlot, pciVendorInfo, physicalNetwork } = device;
  const told = Object.entries({ pci_slot: pciSlot, pci_vendor_info: pciVendorInfo, physical_network: physicalNetwork });
  const known = told.filter(([, value]) => value !== "");
  const isSame = DEVICE_FIELDS.every((name) => profile[name] === known.find(([field]) => field === name)?.[1]);
  return isSame ? profile : { ...withoutDevice(profile), ...Object.fromEntries(known) };
}

/** The profile without a function of any host. Returns the profile itself if it names none. */
export function withoutDevice(profile: Profile): Profile {
  if (DEVICE_FIELDS.every((name) => profile[name] === undefined)) return profile;
  return Object.fromEntries(Object.entries(profile).filter(([name]) => !DEVICE_FIELDS.includes(name)));
}

/** The profile without the providers that served the port's resource request. Returns the profile itself if it names none. */
export function withoutAllocation(profile: Profile): Profile {
  if (profile.allocation === undefined) return profile;
  const { allocation: _allocation, ...left } = profile;
  return left;
}
