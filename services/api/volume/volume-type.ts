/** The one type of volumes, under the name of the type that Cinder makes for volumes without one. */
export const VOLUME_TYPE = {
  id: "5ad3e3ff-6c7a-4d0e-9b52-6f0f0f6f3c11",
  name: "__DEFAULT__",
  description: "The type of all volumes",
  is_public: true,
  "os-volume-type-access:is_public": true,
  extra_specs: {},
  qos_specs_id: null,
} as const;

export const isVolumeType = (name: string): boolean => name === VOLUME_TYPE.id || name === VOLUME_TYPE.name;
