import type { NeutronPort, PortUpdate } from "../../../../core/stores/networking.ts";
import { askedBy, askNeighbour } from "../../http/ask-neighbour.ts";
import type { KnownCall } from "../../http/call.ts";
import { storedSpelling } from "../../http/canonical-uuid.ts";
import { badRequest, conflict, Fault, invalidField, notFound } from "../../http/fault.ts";
import type { NeutronDeps } from "../../network/neutron-deps.ts";
import type { ActionCall, ActionDeps, ActionResult } from "../server-actions/action-call.ts";
import { refuseLocked } from "../servers/server-lock.ts";
import { readAddress } from "./floating-ip-actions.ts";

type Deps = Pick<ActionDeps, "finder" | "neutron" | "refresher">;
type FixedAddresses = NonNullable<PortUpdate["fixedAddresses"]>;

const NETWORK_ID_CHARACTERS_MAX = 36;
/** How often the port of a server is read again that somebody else changes at the same time. */
const TRIES_MAX = 5;
const OWN_NETWORK = "Every port of Berth's own network has exactly one address: attach or detach an interface instead.";

/**
 * Gives a server's port on a network one more address of that network. Nova answers before it has tried, and only its log tells of a refusal; here the
 * caller hears of it.
 */
export async function addFixedIp(deps: Deps, one: ActionCall): Promise<ActionResult> {
  const given = one.body.refuseOthers("networkId").require("networkId").raw("networkId");
  const networkId = typeof given === "number" ? String(given) : given;
  if (typeof networkId !== "string" || networkId.length < 1 || networkId.length > NETWORK_ID_CHARACTERS_MAX)
    throw invalidField("networkId", given, "It is not the id of a network.");
  const { uuid, neutron } = await findServer(deps, one);
  const missing = () => notFound(`Network could not be found for instance ${uuid}.`);
  const id = storedSpelling(networkId);
  const [network] = await askNeighbour(() => neutron.networking.networks({ ids: [id] }, askedBy(neutron, one.call)));
  const subnetIds = network?.subnetIds ?? [];
  if (subnetIds.length === 0) throw missing();
  await changePort(neutron, one.call, { deviceIds: [uuid], networkId: id }, missing, (port) =>
    subnetIds.map((subnetId) => [...port.fixedAddresses, { subnetId, address: null }]),
  );
  await deps.refresher?.refresh([uuid]);
  return { status: 202 };
}

/** Takes a fixed address away from the port of a server that has it. */
export async function removeFixedIp(deps: Deps, one: ActionCall): Promise<ActionResult> {
  const address = readAddress(one.body.refuseOthers("address").require("address"), "address");
  const { uuid, neutron } = await findServer(deps, one);
  const missing = () => badRequest(`Instance ${uuid} does not have fixed IP '${address}'.`);
  await changePort(neutron, one.call, { deviceIds: [uuid], address }, missing, (port) => [
    port.fixedAddresses.filter((fixed) => fixed.address !== address),
  ]);
  await deps.refresher?.refresh([uuid]);
  return { status: 202 };
}

/** Finds a server that is not locked. Refuses what Berth's own network cannot do. */
async function findServer(
  { finder, neutron }: Pick<Deps, "finder" | "neutron">,
  { id, call, action }: ActionCall,
): Promise<{ readonly uuid: string; readonly neutron: NeutronDeps }> {
  const record = await finder.findPresent(id, call);
  refuseLocked({ uuid: record.serverUuid, lock: record.changes?.lock ?? null }, action, call);
  if (neutron === null) throw badRequest(OWN_NETWORK);
  return { uuid: record.serverUuid, neutron };
}

/**
 * Gives the first port of a filter other addresses, in the revision in which it was read: those of the first choice that Neutron takes, as Nova tries the
 * subnets of a network in turn. Throws `missing` if there is no such port.
 */
async function changePort(
  neutron: NeutronDeps,
  call: KnownCall,
  filter: Parameters<NeutronDeps["networking"]["ports"]>[0],
  missing: () => Fault,
  choices: (port: NeutronPort) => readonly FixedAddresses[],
): Promise<void> {
  const by = askedBy(neutron, call);
  for (let tries = 0; tries < TRIES_MAX; tries += 1) {
    const [port] = await askNeighbour(() => neutron.networking.ports(filter, by));
    if (port === undefined) throw missing();
    let refusal: Fault | null = null;
    for (const fixedAddresses of choices(port)) {
      const outcome = await askNeighbour(() =>
        neutron.networking.updatePort(port.id, { fixedAddresses }, port.revision, by),
      );
      if (outcome.kind === "updated") return;
      refusal = null;
      if (outcome.kind === "changed" || outcome.kind === "gone") break;
      refusal = outcome.kind === "forbidden" ? new Fault(403, outcome.why) : badRequest(outcome.why);
    }
    if (refusal !== null) throw refusal;
  }
  throw conflict("The port of the instance kept changing; try again.");
}
