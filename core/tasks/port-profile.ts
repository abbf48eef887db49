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

/** Where Neutron finds the host to which the port's server is being moved live. Source: `MIGRATING_ATTR` in nova/network/constants.py. */
const DESTINATION_FIELD = "migrating_to";

/** The profile that names the host to which the port's server is being moved. Returns the profile itself if it names it already. */
export const withDestination = (profile: Profile, host: string): Profile =>
  profile[DESTINATION_FIELD] === host ? profile : { ...profile, [DESTINATION_FIELD]: host };

/** The profile of a port whose server is not being moved. Returns the profile itself if it names no destination. */
export function withoutDestination(profile: Profile): Profile {
  if (profile[DESTINATION_FIELD] === undefined) return profile;
  const { [DESTINATION_FIELD]: _destination, ...left } = profile;
  return left;
}

/** The profile without the providers that served the port's resource request. Returns the profile itself if it names none. */
export function withoutAllocation(profile: Profile): Profile {
  if (profile.allocation === undefined) return profile;
  const { allocation: _allocation, ...left } = profile;
  return left;
}
