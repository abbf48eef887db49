import { Type } from "typebox";
import type { NodeFacts } from "../../../core/ledger/hypervisor-facts.ts";
import { describeAllKept, whyClosed } from "../../../core/ledger/merge-report.ts";
import { capacityOf } from "../../../core/ledger/model.ts";
import type { AggregateRecord } from "../../../core/scheduling/aggregate-record.ts";
import { type EffectiveRatio, effectiveRatios } from "../../../core/stores/api/effective-ratios.ts";
import type { AdminHost, HostInventory, HostTreeRecord } from "../../../core/stores/cell/host-admin-store.ts";
import { buildFailureHalfLifeMs } from "../../../core/stores/soft-state.ts";
import { findHost } from "../compute/aggregates/find-host.ts";
import { type HostZones, readHostZones } from "../compute/aggregates/host-zones.ts";
import type { OperatorDeps } from "../compute/aggregates/operator-deps.ts";
import { changeHost } from "../compute/compute-services/change-host.ts";
import { listHosts } from "../compute/hypervisors/list-hosts.ts";
import type { Http } from "../http/create-http.ts";
import { badRequest, unavailable } from "../http/fault.ts";
import { NullableString } from "../http/schema.ts";
import { isoSeconds } from "../http/times.ts";

const HostFields = {
  host: Type.String(),
  cell: Type.String(),
  zone: Type.String(),
  state: Type.String(),
  status: Type.String(),
  disabled_reason: NullableString,
  forced_down: Type.Boolean(),
  build_failures: Type.Number(),
};
const Inventory = Type.Object({
  provider: Type.String(),
  resource_class: Type.String(),
  total: Type.Integer(),
  reserved: Type.Integer(),
  used: Type.Integer(),
  capacity: Type.Integer(),
  allocation_ratio: Type.Number(),
  /** `host`, `aggregate NAME` or `agent`. */
  ratio_source: Type.String(),
  /** The ratio that the agent reports, if another ratio overrides it. */
  reported_ratio: Type.Unsafe<number | null>({ type: ["number", "null"] }),
});
const HostTree = Type.Object({
  providers: Type.Array(
    Type.Object({
      uuid: Type.String(),
      name: Type.String(),
      parent: NullableString,
      traits: Type.Array(Type.String()),
      /** `agent` or `other`. */
      owner: Type.String(),
      changed_at: NullableString,
    }),
  ),
  /** Sentences about servers' use beyond the host's capacity, and about a refused report. */
  notes: Type.Array(Type.String()),
});
const HostAnswer = Type.Object({
  ...HostFields,
  /** Why no server can be built on the host at present. */
  closed_because: NullableString,
  /** The bare metal node, in Ironic's words. Null if the host is none. */
  node: Type.Union([
    Type.Object({ provision_state: Type.String(), power_state: Type.String(), closed_because: NullableString }),
    Type.Null(),
  ]),
  root_provider: Type.String(),
  agent: Type.String(),
  seen_at: NullableString,
  aggregates: Type.Array(Type.Object({ id: Type.Integer(), name: Type.String() })),
  servers: Type.Integer(),
  inventories: Type.Array(Inventory),
  tree: HostTree,
  /** The time after which a failure counts half. */
  build_failures_half_life_seconds: Type.Integer(),
});
const HostList = Type.Object({ hosts: Type.Array(Type.Object(HostFields)) });
const HostParams = Type.Object({ host: Type.String({ minLength: 1, maxLength: 255 }) });
const ChangeBody = Type.Object(
  {
    disabled: Type.Optional(Type.Boolean()),
    reason: Type.Optional(Type.String({ minLength: 1, maxLength: 255, pattern: "^[^\\p{Cc}\\p{Cs}]*$" })),
    reset_failures: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false, minProperties: 1 },
);

/** Registers `/hosts`, which combines the facts of all sources about each host. Admins only. */
export function registerHostRoutes(http: Http, deps: OperatorDeps): void {
  const { stores, cells } = deps;

  http.get("/hosts", { config: { rule: "berth:hosts:list" }, schema: { response: { 200: HostList } } }, async () => {
    const [{ hosts }, zones, failures] = await Promise.all([
      listHosts(cells, { withUsage: false }),
      readHostZones(stores),
      stores.softState.buildFailures(),
    ]);
    return { hosts: hosts.map(({ host, cell }) => hostView(host, cell, zones, failures)) };
  });

  const show = { params: HostParams, response: { 200: HostAnswer } };
  http.get("/hosts/:host", { config: { rule: "berth:hosts:show" }, schema: show }, async (request) => {
    return showHost(deps, request.params.host);
  });

  const change = { params: HostParams, body: ChangeBody, response: { 200: HostAnswer } };
  http.put("/hosts/:host", { config: { rule: "berth:hosts:update" }, schema: change }, async (request) => {
    const { disabled, reason, reset_failures: reset } = request.body;
    if (reason !== undefined && disabled !== true)
      throw badRequest("A reason is allowed only together with disabled: true.");
    const found = await findHost(cells, request.params.host);
    if (disabled !== undefined) await changeHost(cells, found, { disabled, reason: reason ?? null });
    if (reset === true) await stores.softState.clearBuildFailures(found.cell.name, found.host.name);
    return showHost(deps, found.host.name);
  });
}

async function showHost({ stores, cells }: OperatorDeps, name: string) {
  const { host, cell } = await findHost(cells, name);
  const [zones, failures, aggregates, ratios, inventories, tree, counts] = await Promise.all([
    readHostZones(stores),
    stores.softState.buildFailures(),
    stores.aggregates.aggregates(),
    stores.ratios.ratioSettings(),
    cell.admin((admin) => admin.inventories(name)),
    cell.admin((admin) => admin.treeOf(name)),
    cell.serverCountByHost(),
  ]);
  if (inventories.kind === "unreachable" || tree.kind === "unreachable" || counts.kind === "unreachable")
    throw unavailable(`The cell ${cell.name} does not answer.`);
  const own: readonly AggregateRecord[] = aggregates.filter((aggregate) => aggregate.hosts.includes(name));
  const effective = effectiveRatios(name, own, ratios);
  return {
    ...hostView(host, cell.name, zones, failures),
    node: nodeView(host.hypervisor.node),
    closed_because: host.hypervisor.closedBecause ?? null,
    root_provider: host.rootProvider,
    agent: host.agentId,
    seen_at: host.seenAtMs === null ? null : isoSeconds(host.seenAtMs),
    aggregates: own.map((aggregate) => ({ id: aggregate.id, name: aggregate.name })),
    servers: counts.value.get(name) ?? 0,
    inventories: inventories.value.map((inventory) => inventoryView(inventory, effective)),
    tree: treeView(tree.value, whyClosed(host.hypervisor)),
    build_failures_half_life_seconds: buildFailureHalfLifeMs / 1_000,
  };
}

function hostView(host: AdminHost, cell: string, zones: HostZones, failures: ReadonlyMap<string, number>) {
  return {
    host: host.name,
    cell,
    zone: zones.of(host.name),
    state: host.up ? "up" : "down",
    status: host.disabled ? "disabled" : "enabled",
    disabled_reason: host.disabledReason,
    forced_down: host.forcedDown,
    build_failures: failures.get(`${cell}/${host.name}`) ?? 0,
  };
}

function nodeView(node: NodeFacts | undefined) {
  if (node === undefined) return null;
  const { provisionState, powerState, closedBecause } = node;
  return {
    provision_state: provisionState,
    power_state: powerState,
    closed_because: closedBecause === "" ? null : closedBecause,
  };
}

function treeView({ providers, kept, refusal }: HostTreeRecord, closedBecause: string | null) {
  return {
    providers: providers.map((one) => ({
      uuid: one.provider,
      name: one.providerName,
      parent: one.parent,
      traits: [...one.traits],
      owner: one.isReported ? "agent" : "other",
      changed_at: one.changedAtMs === null ? null : isoSeconds(one.changedAtMs),
    })),
    notes: [
      ...describeAllKept(kept, closedBecause),
      ...(refusal === ""
        ? []
        : [`the tree stays unchanged, because its servers do not fit into the new one: ${refusal}`]),
    ],
  };
}

function inventoryView(inventory: HostInventory, effective: ReadonlyMap<string, EffectiveRatio>) {
  const override = inventory.reportedRatio === null ? undefined : effective.get(inventory.resourceClass);
  return {
    provider: inventory.providerName,
    resource_class: inventory.resourceClass,
    total: inventory.total,
    reserved: inventory.reserved,
    used: inventory.used,
    capacity: capacityOf(inventory),
    allocation_ratio: inventory.allocationRatio,
    ratio_source: override === undefined ? "agent" : describeSource(override),
    reported_ratio: inventory.reportedRatio,
  };
}

function describeSource({ source }: EffectiveRatio): string {
  return source.kind === "host" ? "host" : `aggregate ${source.name}`;
}
