import { AggregateIndex } from "../../../../core/scheduling/aggregate-index.ts";
import { type Explanation, explainRequest } from "../../../../core/scheduling/explain/explain-request.ts";
import type { HostFilter } from "../../../../core/scheduling/filters/host-filter.ts";
import { hostRules } from "../../../../core/scheduling/host-rules.ts";
import type { CellHosts } from "../../../../core/scheduling/ranking/cell-ranking.ts";
import { askedOf } from "../../../../core/scheduling/request/asked.ts";
import { describeRequestRefusal } from "../../../../core/scheduling/request/request-refusal.ts";
import { translateRequest } from "../../../../core/scheduling/request/translate-request.ts";
import {
  DEFAULT_SCHEDULING_SETTINGS,
  readSchedulingSettings,
  type SchedulingSettings,
} from "../../../../core/scheduling/scheduling-settings.ts";
import { seedOf } from "../../../../core/scheduling/seeded-random.ts";
import { buildFailures } from "../../../../core/scheduling/weighers/build-failures.ts";
import { GpuFragmentation } from "../../../../core/scheduling/weighers/gpu-fragmentation.ts";
import { OwnSlice } from "../../../../core/scheduling/weighers/own-slice.ts";
import { RecentPicks } from "../../../../core/scheduling/weighers/recent-picks.ts";
import { WeigherSet } from "../../../../core/scheduling/weighers/weigher-set.ts";
import type { ImageService } from "../../../../core/stores/api/image-service.ts";
import type { ServerGroupStore } from "../../../../core/stores/api/server-group-store.ts";
import { SCHEDULING_SECTION } from "../../../../core/stores/api/settings-store.ts";
import { PLAIN_REQUEST } from "../../../../core/tasks/server-spec.ts";
import type { ServerSpec } from "../../../../proto/gen/berth/shared.ts";
import type { FlavorCatalog } from "../../compute/flavors/flavor-catalog.ts";
import { readImage } from "../../compute/servers/read-image.ts";
import { hintsOf } from "../../compute/servers/scheduler-hints.ts";
import type { KnownCall } from "../../http/call.ts";
import { storedSpelling as canonicalImage } from "../../http/canonical-uuid.ts";
import { badRequest } from "../../http/fault.ts";
import { imageCallerOf } from "../../image/image-caller.ts";
import type { ImageRule } from "../../image/image-rule.ts";
import { readUuidLike } from "../../placement/uuids.ts";
import type { CellPort, OperatorStores } from "../../ports.ts";
import type { ExplainBody } from "./explain-schemas.ts";

export interface ExplainDeps {
  readonly stores: OperatorStores;
  readonly cells: readonly CellPort[];
  readonly flavors: FlavorCatalog;
  readonly images: Pick<ImageService, "find"> | null;
  /** How unregistered images are handled; the same as for a real server. */
  readonly imageRule: ImageRule;
  readonly groups: Pick<ServerGroupStore, "group">;
  /** The cloud's own filters, the same as in the schedulers. */
  readonly ownFilters: readonly HostFilter[];
}

export interface ExplainedCall {
  /** Why the request is refused before any host is considered, or null. */
  readonly refusal: string | null;
  /** Null when the request is refused. */
  readonly explanation: Explanation | null;
  readonly cellsNotSearched: readonly string[];
}

const NOBODY = "00000000-0000-0000-0000-000000000000";
const RANKED_MAX = 5;
const MISSES_MAX = 5;
/** The default number of alternates, the same as in schedulers. */
const ALTERNATES = 2;

/**
 * Explains where a server would go, according to this process's views. Nothing is stored and no scheduler is involved. Refuses an unknown
 * flavor or group. State that only schedulers have is left out: their latest picks, their slices, and the knowledge from failed claims.
 */
export async function explainCall(deps: ExplainDeps, call: KnownCall, body: ExplainBody): Promise<ExplainedCall> {
  const spec = await specOf(deps, call, body);
  const [stored, aggregates, failures] = await Promise.all([
    deps.stores.settings.read(SCHEDULING_SECTION),
    deps.stores.aggregates.aggregates(),
    deps.stores.softState.buildFailures(),
  ]);
  const read = readSchedulingSettings(stored.values);
  const settings = read.kind === "settings" ? read.settings : DEFAULT_SCHEDULING_SETTINGS;
  const index = new AggregateIndex(aggregates, settings.defaultAvailabilityZone);
  const { cells, cellsNotSearched } = searchable(deps.cells, index);
  const asked = askedOf(spec);
  const translated = asked && translateRequest(asked, { aggregates: index.all, settings });
  if (translated?.kind !== "host-request") {
    const refusal = translated ? describeRequestRefusal(translated) : "the request has no flavor";
    return { refusal, explanation: null, cellsNotSearched };
  }
  const explanation = explainRequest(cells, {
    hostRequest: translated.hostRequest,
    options: {
      ...rulesOf(settings, failures, deps.ownFilters),
      seed: seedOf(body.flavor),
      alternates: body.alternates ?? ALTERNATES,
      spec,
    },
    ...{ hostsMax: body.limit ?? RANKED_MAX, missesMax: MISSES_MAX, count: body.count ?? 1, host: body.host },
  });
  return { refusal: null, explanation, cellsNotSearched };
}

async function specOf(deps: ExplainDeps, call: KnownCall, body: ExplainBody): Promise<ServerSpec> {
  const found = await deps.flavors.find(body.flavor, { isAdmin: true, projectId: "" });
  if (found === null) throw badRequest(`Flavor ${body.flavor} could not be found: give its id, not its name.`);
  const { flavor } = found;
  const imageRef = canonicalImage(body.image ?? "");
  const rule = { caller: imageCallerOf(call), flavor, rule: deps.imageRule };
  const hints = hintsOf(body.hints ?? {});
  return {
    ...PLAIN_REQUEST,
    ...{ uuid: NOBODY, name: "explained", userId: call.identity.userId, metadata: {}, requestId: "", createdAtMs: 0 },
    projectId: body.project_id ?? call.identity.projectId,
    flavor,
    imageRef,
    imageProperties: { ...(await readImage(imageRef, deps.images, rule)).properties },
    availabilityZone: body.zone ?? "",
    hints,
    portRequests: [],
    group: await groupOf(deps, hints.find(({ name }) => name === "group")?.values[0]),
  };
}

async function groupOf(deps: ExplainDeps, named: string | undefined): Promise<ServerSpec["group"]> {
  if (named === undefined) return undefined;
  const uuid = readUuidLike(named);
  const group = uuid === null ? null : await deps.groups.group(uuid);
  if (group === null) throw badRequest(`Instance group ${named.slice(0, 100)} could not be found.`);
  return { uuid: group.uuid, policy: group.policy, maxServerPerHost: group.maxServerPerHost ?? 0 };
}

/** Returns the cells whose views this process follows and that have loaded, and hands the aggregates to their host facts. */
function searchable(cells: readonly CellPort[], index: AggregateIndex) {
  const open: CellHosts[] = [];
  const cellsNotSearched: string[] = [];
  for (const { name, view, facts, source } of cells) {
    if (view === null || source?.ready === false) {
      cellsNotSearched.push(name);
      continue;
    }
    facts?.setAggregates(index);
    open.push({ name, view, facts });
  }
  return { cells: open, cellsNotSearched };
}

/** Builds the rules. `failures` has counts by cell and host. */
function rulesOf(
  settings: SchedulingSettings,
  failures: ReadonlyMap<string, number>,
  ownFilters: readonly HostFilter[],
) {
  const byCell = new Map<string, Map<string, number>>();
  for (const [key, count] of failures) {
    const at = key.indexOf("/");
    const cell = key.slice(0, at);
    byCell.set(cell, (byCell.get(cell) ?? new Map<string, number>()).set(key.slice(at + 1), count));
  }
  const weighers = new WeigherSet({
    buildFailure: buildFailures((cell) => byCell.get(cell)),
    ownSlice: new OwnSlice(""),
    recentPicks: new RecentPicks(),
    gpuFragmentation: new GpuFragmentation(),
  });
  return hostRules(settings, weighers, ownFilters);
}
