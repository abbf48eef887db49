import type { ApiCall } from "./call-in-process.ts";
import { CINDER_PLACE } from "./sim-cinder.ts";
import type { CinderEvent } from "./sim-fills.ts";
import type { SimNeighbours } from "./sim-neighbours.ts";
import { NEUTRON_PLACE, type NeutronEvent } from "./sim-neutron.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

interface ListeningCloud extends SimNeighbours {
  readonly supervisor: { names(kind: "api"): readonly string[] };
  call(from: SimProcess, api: string, call: ApiCall): Promise<unknown>;
}

/** Lets Neutron and Cinder report their events to any api. They repeat none that is not answered. */
export function hearNeighbours(world: World, cloud: ListeningCloud): void {
  const { cinder, neutron } = cloud;
  if (neutron !== null) neutron.onEvent = reporter(world, cloud, NEUTRON_PLACE);
  if (cinder !== null && cinder.fills !== null) cinder.fills.onEvent = reporter(world, cloud, CINDER_PLACE);
}

function reporter(world: World, cloud: ListeningCloud, place: string): (event: NeutronEvent | CinderEvent) => void {
  const [sender, random] = [world.process(place), world.random(`${place} events`)];
  return (event) => {
    const apis = cloud.supervisor.names("api");
    const call = { method: "POST", url: "/v2.1/os-server-external-events", payload: { events: [event] } } as const;
    void cloud.call(sender, apis[Math.floor(random() * apis.length)]!, call);
  };
}
