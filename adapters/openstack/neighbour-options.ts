import { duration, oneOf, text } from "../../runtime/setting-kinds.ts";
import { optional, setting, type ValuesOf } from "../../runtime/settings.ts";
import { ENDPOINT_INTERFACES } from "./service-catalogue.ts";

/** The settings for finding and calling the other OpenStack services of the cloud. Spread them into a declaration. */
export const neighbourOptions = {
  openstackRegion: optional(text(), {
    about:
      "region of the other OpenStack services in Keystone's catalogue; by default the first one that has the service",
  }),
  openstackInterface: setting(oneOf(...ENDPOINT_INTERFACES), {
    about: "interface of the other OpenStack services in Keystone's catalogue",
    default: "internal",
  }),
  openstackTimeout: setting(duration({ minMs: 100, maxMs: 600_000 }), {
    about: "how long another OpenStack service may take to answer",
    default: "20s",
  }),
};

export type NeighbourOptions = ValuesOf<typeof neighbourOptions>;
