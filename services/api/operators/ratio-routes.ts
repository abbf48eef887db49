import { Type } from "typebox";
import type { RatioScope } from "../../../core/stores/api/ratio-store.ts";
import { findHost } from "../compute/aggregates/find-host.ts";
import type { OperatorDeps } from "../compute/aggregates/operator-deps.ts";
import type { Http } from "../http/create-http.ts";
import { badRequest, notFound } from "../http/fault.ts";
import { SyncAnswer, syncView } from "./sync-view.ts";

const RatioChanges = Type.Unsafe<Record<string, number | null>>({
  type: "object",
  minProperties: 1,
  maxProperties: 100,
  patternProperties: { "^[A-Z0-9_]{1,255}$": { type: ["number", "null"], exclusiveMinimum: 0, maximum: 1e9 } },
  additionalProperties: false,
});
const ChangeBody = Type.Object(
  {
    /** The aggregate's name, or the digits of its id. */
    aggregate: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    host: Type.Optional(Type.String({ minLength: 1, maxLength: 255 })),
    ratios: RatioChanges,
  },
  { additionalProperties: false },
);
const Ratios = Type.Record(Type.String(), Type.Number());
const RatiosAnswer = Type.Object({
  aggregates: Type.Array(Type.Object({ id: Type.Integer(), name: Type.String(), ratios: Ratios })),
  hosts: Type.Array(Type.Object({ host: Type.String(), ratios: Ratios })),
});

/** `/ratios` and `/sync-aggregates`: allocation ratios by host and by aggregate, written to the cells in the same act. Admins only. */
export function registerRatioRoutes(http: Http, deps: OperatorDeps): void {
  const { aggregates, ratios } = deps.stores;

  const show = { config: { rule: "berth:ratios:show" }, schema: { response: { 200: RatiosAnswer } } };
  http.get("/ratios", show, async () => {
    const [settings, known] = await Promise.all([ratios.ratioSettings(), aggregates.aggregates()]);
    return {
      aggregates: known
        .filter(({ id }) => settings.byAggregate.has(id))
        .map(({ id, name }) => ({ id, name, ratios: { ...settings.byAggregate.get(id) } })),
      hosts: Array.from(settings.byHost, ([host, ofHost]) => ({ host, ratios: { ...ofHost } })),
    };
  });

  const change = {
    config: { rule: "berth:ratios:update" },
    schema: { body: ChangeBody, response: { 200: SyncAnswer } },
  };
  http.put("/ratios", change, async (request) => {
    const { aggregate, host, ratios: changes } = request.body;
    const scope = await scopeOf(deps, aggregate, host, Object.values(changes).includes(null));
    if (!(await ratios.changeRatios(scope, changes))) throw notFound(`There is no aggregate ${aggregate}.`);
    return syncView(await deps.syncer.syncSoon(scope.kind === "host" ? [scope.host] : null));
  });

  const Sync = Type.Object({ dry_run: Type.Optional(Type.Boolean()) }, { additionalProperties: false });
  const sync = { config: { rule: "berth:sync-aggregates" }, schema: { body: Sync, response: { 200: SyncAnswer } } };
  http.post("/sync-aggregates", sync, async (request) => {
    return syncView(await deps.syncer.sync(null, { dryRun: request.body.dry_run ?? false }));
  });
}

/**
 * Reads the host or aggregate that a change is about. Throws 404 when it does not exist, except that ratios of a removed host can still be
 * cleared.
 */
async function scopeOf(
  { stores, cells }: OperatorDeps,
  aggregate: string | undefined,
  host: string | undefined,
  takesBack: boolean,
): Promise<RatioScope> {
  if ((aggregate === undefined) === (host === undefined)) throw badRequest("Name either an aggregate or a host.");
  if (host !== undefined) {
    if (!takesBack) await findHost(cells, host);
    return { kind: "host", host };
  }
  const known = await stores.aggregates.aggregates();
  const found = known.find(({ name }) => name === aggregate) ?? known.find(({ id }) => String(id) === aggregate);
  if (found === undefined) throw notFound(`There is no aggregate ${aggregate}.`);
  return { kind: "aggregate", id: found.id };
}
