import type {
  AskedBy,
  CreatePortsOutcome,
  FixedAddress,
  NetworkFilter,
  Networking,
  NeutronNetwork,
  NeutronPort,
  NeutronPortFilter,
  NewNeutronPort,
  PortUpdate,
  UpdatePortOutcome,
} from "../../core/stores/networking.ts";
import { BINDING_FAILED, OWN_NAME } from "../../core/stores/networking.ts";
import { NetworkingError } from "../../core/stores/networking-error.ts";
import type { CreateBindingOutcome, HostBinding, NewHostBinding } from "../../core/stores/port-bindings.ts";
import { ipv4At, ipv4Offset } from "../../core/tasks/ipv4.ts";
import type { PortGroup } from "../../core/tasks/port-record.ts";
import { macOf } from "../../runtime/mac-of.ts";
import { MemorySecurityGroups } from "./api/memory-security-groups.ts";
import { MemoryFloatingIps } from "./memory-floating-ips.ts";
import { MemoryPortBindings } from "./memory-port-bindings.ts";

/** What becomes of a call: it is answered, it never arrives, or it has its effect and its answer is lost. */
export type NetworkingFate = "answered" | "silent" | "lost";

/** A network of the twin. It gives out the addresses of its one subnet, of which `size` are free at first. */
export interface TwinNetwork extends Omit<NeutronNetwork, "hasQosPolicy"> {
  readonly first: string;
  readonly size: number;
  /** 0 if absent. */
  readonly vlan?: number;
  /** What the ports that are made there request by the network's QoS policy. */
  readonly groups?: readonly PortGroup[];
}

/**
 * The in-process twin of Neutron. A caller's token is the id of its project: the caller sees the project's own networks and ports and the
 * shared networks. Every host can connect ports except those in `hostsWithoutDriver`.
 */
export class MemoryNetworking implements Networking {
  readonly securityGroups = new MemorySecurityGroups({
    isInUse: (id) => this.all().some(({ securityGroups }) => securityGroups.includes(id)),
    setGroups: () => false,
  });
  readonly floatingIps = new MemoryFloatingIps({
    ports: () => this.all(),
    network: (id) => this.#networks.get(id),
    answer: (work) => this.#answer("floatingIps", work),
  });
  readonly hostsWithoutDriver = new Set<string>();
  /** The status of a port that is bound. A Neutron with agents on the hosts says DOWN until the agent has connected the guest. */
  statusWhenBound = "ACTIVE";
  /** The MAC address of each virtual function that has one, by host and PCI address. */
  readonly #functionMacs = new Map<string, string>();
  /** Whether Neutron has the extension `binding-extended`. */
  hasExtendedBindings = true;
  /** The network that a project without any gets, by the project. */
  readonly autoNetworks = new Map<string, string>();
  /** Maximum number of ports of each project. */
  portsMax = Number.POSITIVE_INFINITY;
  /** Decides about each call, by the name of its method. */
  fate: (method: keyof Networking | "floatingIps") => NetworkingFate = () => "answered";
  readonly #networks = new Map<string, TwinNetwork>();
  readonly #ports = new Map<string, NeutronPort>();
  readonly #bindings = new MemoryPortBindings({
    port: (id) => this.#ports.get(id),
    bind: (port) => void this.#ports.set(port.id, port),
    bound: (host, port) => this.#bound(host, port),
  });
  readonly #newId: () => string;

  constructor(options: { readonly newId: () => string }) {
    this.#newId = options.newId;
  }

  putNetwork(network: TwinNetwork): void {
    this.#networks.set(network.id, network);
  }

  /** Stores a port as a user has made it, and returns it. */
  putPort(port: Partial<NeutronPort> & Pick<NeutronPort, "projectId" | "networkId">): NeutronPort {
    const id = port.id ?? this.#newId();
    const fixedAddresses = port.fixedAddresses ?? [this.#freeAddress(port.networkId) ?? []].flat();
    const kept: NeutronPort = { ...EMPTY, macAddress: macOf(id), ...port, id, fixedAddresses };
    this.#ports.set(id, kept);
    return kept;
  }

  /**
   * Gives a host's virtual function a MAC address, or none (null). The agent of the mechanism driver `sriovnicswitch` connects a direct port only when it finds
   * the port's MAC address on the function that the port's profile names: until then the port is DOWN.
   */
  setFunctionMac(host: string, pciSlot: string, mac: string | null): void {
    if (mac === null) this.#functionMacs.delete(`${host} ${pciSlot}`);
    else this.#functionMacs.set(`${host} ${pciSlot}`, mac);
    for (const port of this.all())
      if (port.vnicType === "direct" && port.host === host)
        this.#ports.set(port.id, { ...port, ...this.#bound(host, port) });
  }

  /**
   * The host whose agent of Neutron connects the port before the port's binding to it is active: the one to which the port's server is being moved, if a
   * binding is prepared for it. Null for any other port. The agent of the host where such a port is bound does not connect it.
   */
  connectedAhead(id: string): string | null {
    const destination = this.#ports.get(id)?.profile.migrating_to;
    return typeof destination === "string" && this.#bindings.isPrepared(id, destination) ? destination : null;
  }

  /** All ports, whoever has them. */
  all(): readonly NeutronPort[] {
    return [...this.#ports.values()];
  }

  networks(filter: NetworkFilter, { callerToken }: AskedBy): Promise<readonly NeutronNetwork[]> {
    return this.#answer("networks", () =>
      [...this.#networks.values()]
        .filter(
          ({ projectId, isShared, isExternal }) =>
            callerToken === null || projectId === callerToken || isShared || isExternal,
        )
        .filter(({ id }) => filter.ids?.includes(id) ?? true)
        .filter(({ projectId }) => filter.projectId === undefined || projectId === filter.projectId)
        .filter(({ isShared }) => filter.isShared === undefined || isShared === filter.isShared)
        .filter(({ isExternal }) => filter.isExternal === undefined || isExternal === filter.isExternal)
        .map((network) => shownNetwork(network, callerToken !== null)),
    );
  }

  autoNetwork(projectId: string, _by: AskedBy): Promise<NeutronNetwork | null> {
    return this.#answer("autoNetwork", () => {
      const network = this.#networks.get(this.autoNetworks.get(projectId) ?? "");
      return network === undefined ? null : shownNetwork(network, true);
    });
  }

  ports(filter: NeutronPortFilter, { callerToken }: AskedBy): Promise<readonly NeutronPort[]> {
    return this.#answer("ports", () =>
      [...this.#ports.values()]
        .filter(({ projectId }) => callerToken === null || projectId === callerToken)
        .filter(({ id }) => filter.id === undefined || id === filter.id)
        .filter(({ deviceId }) => filter.deviceIds?.includes(deviceId) ?? true)
        .filter(({ networkId }) => filter.networkId === undefined || networkId === filter.networkId)
        .filter(({ fixedAddresses }) => filter.address === undefined || hasAddress(fixedAddresses, filter.address))
        .map((port) => (callerToken === null ? port : { ...port, ...UNSEEN })),
    );
  }

  createPorts(ports: readonly NewNeutronPort[], { callerToken }: AskedBy): Promise<CreatePortsOutcome> {
    return this.#answer("createPorts", () => {
      const forbidden = ports.find((port) => callerToken !== null && !this.#mayMake(port, callerToken));
      if (forbidden !== undefined) return { kind: "forbidden", why: "(rule:create_port) is disallowed by policy" };
      const before = new Map(this.#ports);
      const made: NeutronPort[] = [];
      for (const port of ports) {
        const outcome = this.#create(port);
        if (outcome.kind !== "created") {
          this.#ports.clear();
          for (const [id, kept] of before) this.#ports.set(id, kept);
          return outcome;
        }
        made.push(...outcome.ports);
      }
      return { kind: "created", ports: made };
    });
  }

  updatePort(
    id: string,
    update: PortUpdate,
    revision: number,
    { callerToken }: AskedBy = OWN_NAME,
  ): Promise<UpdatePortOutcome> {
    return this.#answer("updatePort", () => {
      const port = this.#ports.get(id);
      if (port === undefined) return { kind: "gone" };
      if (this.#bindings.restore(id) || port.revision !== revision) return { kind: "changed" };
      // Neutron's default policy: only the owner of the network chooses the addresses of its ports.
      if (callerToken !== null && this.#networks.get(port.networkId)?.projectId !== callerToken)
        return { kind: "forbidden", why: "(rule:update_port) is disallowed by policy" };
      const fixedAddresses = this.#readdressed(port, update.fixedAddresses);
      if (fixedAddresses === null) return { kind: "refused", why: "No more IP addresses available on network." };
      const { device, securityGroups = port.securityGroups } = update;
      const host = device === null ? "" : (update.host ?? port.host);
      if (host !== port.host && this.#bindings.isPrepared(id, host))
        throw new NetworkingError("unreachable", "Neutron answers 500: the port has a binding to the host already");
      const deviceId = device === undefined ? port.deviceId : (device?.serverUuid ?? "");
      const addressed = { ...port, fixedAddresses };
      const profile = update.profile ?? port.profile;
      const changed = {
        ...addressed,
        deviceId,
        securityGroups,
        profile,
        revision: revision + 1,
        ...this.#bound(host, { ...port, profile }),
      };
      this.#ports.set(id, host === port.host ? changed : afterBinding(changed));
      return { kind: "updated", port: changed };
    });
  }

  deletePort(id: string, revision: number | null): Promise<"deleted" | "changed"> {
    return this.#answer("deletePort", () => {
      const port = this.#ports.get(id);
      if (this.#bindings.restore(id)) return "changed";
      if (port !== undefined && revision !== null && port.revision !== revision) return "changed";
      this.#ports.delete(id);
      return "deleted";
    });
  }

  /** Whether Neutron itself refuses changes of this port, because its active binding was deleted. */
  lacksActiveBinding(id: string): boolean {
    return this.#bindings.lacksActive(id);
  }

  hasBindings(): Promise<boolean> {
    return this.#answer("hasBindings", () => this.hasExtendedBindings);
  }

  bindings(portId: string): Promise<readonly HostBinding[] | null> {
    return this.#answer("bindings", () => this.#bindings.all(portId));
  }

  createBinding(portId: string, binding: NewHostBinding): Promise<CreateBindingOutcome> {
    return this.#answer("createBinding", () => this.#bindings.create(portId, binding));
  }

  activateBinding(portId: string, host: string): Promise<"active" | "missing"> {
    return this.#answer("activateBinding", () => this.#bindings.activate(portId, host));
  }

  deleteBinding(portId: string, host: string): Promise<void> {
    return this.#answer("deleteBinding", () => this.#bindings.delete(portId, host));
  }

  /** Neutron's default policy: callers make ports of their own project, bind none, and name addresses on networks that they own. */
  #mayMake({ projectId, networkId, address, host }: NewNeutronPort, callerToken: string): boolean {
    if (projectId !== callerToken || host !== null) return false;
    return address === null || this.#networks.get(networkId)?.projectId === callerToken;
  }

  #create(port: NewNeutronPort): CreatePortsOutcome {
    const owned = [...this.#ports.values()].filter(({ projectId }) => projectId === port.projectId);
    if (owned.length >= this.portsMax) return { kind: "over-quota" };
    const network = this.#networks.get(port.networkId);
    if (network === undefined) return { kind: "refused", why: `Network ${port.networkId} could not be found.` };
    const { address } = port;
    if (address !== null && !isIn(network, address))
      return { kind: "refused", why: `IP address ${address} is not a valid IP for the specified network.` };
    if (address !== null && this.#isTaken(port.networkId, address)) return { kind: "address-taken" };
    const fixed =
      address === null ? this.#freeAddress(port.networkId) : { address, subnetId: network.subnetIds[0] ?? "" };
    if (fixed === null) return { kind: "no-address" };
    const { projectId, networkId, serverUuid: deviceId, securityGroups } = port;
    const made = {
      ...{ projectId, networkId, deviceId, securityGroups: securityGroups ?? [`default-of-${projectId}`] },
      ...{ fixedAddresses: [fixed], groups: network.groups ?? [] },
      ...this.#bound(port.host ?? "", { vnicType: "normal", networkId }),
    };
    const created = this.putPort(made);
    if (port.host !== null) this.#ports.set(created.id, afterBinding(created));
    return { kind: "created", ports: [created] };
  }

  /** Null if the network has no free address. */
  #readdressed(
    { networkId, fixedAddresses }: NeutronPort,
    wanted: PortUpdate["fixedAddresses"],
  ): readonly FixedAddress[] | null {
    if (wanted === undefined) return fixedAddresses;
    const fixed: FixedAddress[] = [];
    for (const { subnetId, address } of wanted) {
      const free = address ?? this.#freeAddress(networkId, fixed)?.address;
      if (free === undefined) return null;
      fixed.push({ subnetId, address: free });
    }
    return fixed;
  }

  #bound(host: string, port: BindablePort): Pick<NeutronPort, "host" | "vifType" | "vifDetails" | "status"> {
    const vifDetails = {};
    if (host === "") return { host, vifType: "unbound", vifDetails, status: "DOWN" };
    if (this.hostsWithoutDriver.has(host)) return { host, vifType: BINDING_FAILED, vifDetails, status: "DOWN" };
    if (port.vnicType !== "direct")
      return { host, vifType: "ovs", vifDetails: { bridge_name: `br-${host}` }, status: this.statusWhenBound };
    const vlan = String(this.#networks.get(port.networkId)?.vlan ?? 0);
    const isFound = this.#functionMacs.get(`${host} ${port.profile?.pci_slot}`) === port.macAddress;
    return { host, vifType: "hw_veb", vifDetails: { vlan }, status: isFound ? this.statusWhenBound : "DOWN" };
  }

  #isTaken(networkId: string, address: string): boolean {
    return [...this.#ports.values()].some(
      (port) => port.networkId === networkId && hasAddress(port.fixedAddresses, address),
    );
  }

  #freeAddress(networkId: string, others: readonly FixedAddress[] = []): FixedAddress | null {
    const network = this.#networks.get(networkId);
    for (let offset = 0; network !== undefined && offset < network.size; offset += 1) {
      const address = ipv4At(network.first, offset);
      if (!this.#isTaken(networkId, address) && !hasAddress(others, address))
        return { address, subnetId: network.subnetIds[0] ?? "" };
    }
    return null;
  }

  /** The promise settles in a later turn, as that of a call over a network does. */
  async #answer<Value>(method: keyof Networking | "floatingIps", work: () => Value): Promise<Value> {
    const fate = this.fate(method);
    await Promise.resolve();
    if (fate === "silent") throw new NetworkingError("unreachable", "Neutron does not answer: it is silent");
    const value = work();
    if (fate === "lost") throw new NetworkingError("unreachable", "Neutron does not answer: its answer was lost");
    return value;
  }
}

/** What a driver's way to connect a port depends on. */
type BindablePort = Pick<NeutronPort, "vnicType" | "networkId"> & Partial<Pick<NeutronPort, "macAddress" | "profile">>;

const EMPTY = {
  ...{ ipAllocation: "immediate", status: "DOWN", deviceId: "", securityGroups: [], host: "", vifType: "unbound" },
  ...{ vnicType: "normal", vifDetails: {}, profile: {}, revision: 1, groups: [] },
};
/** What callers do not see of a port's binding. */
const UNSEEN = { host: "", vifType: "", vifDetails: {}, profile: {}, groups: [] };

/** Callers see no physical networks. */
function shownNetwork(
  { first: _first, size: _size, vlan: _vlan, groups = [], physicalNetwork, ...network }: TwinNetwork,
  isCaller: boolean,
): NeutronNetwork {
  const shown = { ...network, hasQosPolicy: groups.length > 0 };
  return isCaller || physicalNetwork === undefined ? shown : { ...shown, physicalNetwork };
}

/** Neutron binds a port after it has written the answer, and raises the revision once more. */
const afterBinding = (port: NeutronPort): NeutronPort => ({ ...port, revision: port.revision + 1 });

const hasAddress = (fixed: readonly FixedAddress[], address: string): boolean =>
  fixed.some((one) => one.address === address);

function isIn({ first, size }: TwinNetwork, address: string): boolean {
  const offset = ipv4Offset(first, address);
  return offset >= 0 && offset < size;
}
