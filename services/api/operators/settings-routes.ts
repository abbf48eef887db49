import { Type } from "typebox";
import {
  DEFAULT_SCHEDULING_SETTINGS,
  describeSettingRefusal,
  readSchedulingSettings,
  SCHEDULING_OPTIONS,
  writeSchedulingSettings,
} from "../../../core/scheduling/scheduling-settings.ts";
import { SCHEDULING_SECTION, type StoredSettings } from "../../../core/stores/api/settings-store.ts";
import type { Http } from "../http/create-http.ts";
import { badRequest, conflict } from "../http/fault.ts";
import type { OperatorStores } from "../ports.ts";

const Values = Type.Unsafe<Record<string, unknown>>({ type: "object", maxProperties: 200, additionalProperties: true });
const ChangeBody = Type.Object(
  {
    /** The change is refused when the stored version differs from this one. */
    version: Type.Optional(Type.Integer({ minimum: 0 })),
    set: Type.Optional(Values),
    unset: Type.Optional(Type.Array(Type.String({ maxLength: 255 }), { maxItems: 200 })),
  },
  { additionalProperties: false },
);
type Change = Type.Static<typeof ChangeBody>;
const SettingsAnswer = Type.Object({
  version: Type.Integer(),
  /** The values that operators have set. */
  set: Values,
  /** Every option as it is in force. */
  effective: Values,
});

/** Maximum number of retries after concurrent writes. After that, the caller gets a conflict. */
const TRIES_MAX = 10;

/** `GET` and `PUT /settings`: the settings that schedulers read while they run. Admins only. A change is applied completely or not at all. */
export function registerSettingsRoutes(http: Http, { settings }: Pick<OperatorStores, "settings">): void {
  const show = { config: { rule: "berth:settings:show" }, schema: { response: { 200: SettingsAnswer } } };
  http.get("/settings", show, async () => {
    return view(await settings.read(SCHEDULING_SECTION));
  });

  const change = { body: ChangeBody, response: { 200: SettingsAnswer } };
  http.put("/settings", { config: { rule: "berth:settings:update" }, schema: change }, async (request) => {
    for (let tries = 1; ; tries += 1) {
      const stored = await settings.read(SCHEDULING_SECTION);
      const { version } = request.body;
      if (version !== undefined && version !== stored.version)
        throw conflict(`The settings are at version ${stored.version}, not ${version}.`);
      const values = changedValues(stored.values, request.body);
      const outcome = await settings.write(SCHEDULING_SECTION, stored.version, values);
      if (outcome.kind === "written") return view({ version: outcome.version, values });
      if (tries === TRIES_MAX)
        throw conflict("The settings were changed by other requests again and again; try again.");
    }
  });
}

/** Applies a change to the values. Throws 400 with all reasons: unknown options, and invalid values. */
function changedValues(values: StoredSettings["values"], { set = {}, unset = [] }: Change): Record<string, unknown> {
  const unknown = unset.filter((option) => !SCHEDULING_OPTIONS.includes(option) && !Object.hasOwn(values, option));
  if (unknown.length > 0) throw badRequest(`There is no option ${unknown.join(", ")}.`);
  const changed = Object.fromEntries(
    Object.entries({ ...values, ...set }).filter(([option]) => !unset.includes(option)),
  );
  const read = readSchedulingSettings(changed);
  if (read.kind === "refused") throw badRequest(read.refusals.map(describeSettingRefusal).join(" "));
  // Values are stored as they were read, so that "2" is stored as 2.
  const effective = writeSchedulingSettings(read.settings);
  return Object.fromEntries(Object.keys(changed).map((option) => [option, effective[option]]));
}

/** Options that this version cannot read are shown as stored; schedulers stay with the settings they had. */
function view({ version, values }: StoredSettings) {
  const read = readSchedulingSettings(values);
  const settings = read.kind === "settings" ? read.settings : DEFAULT_SCHEDULING_SETTINGS;
  return { version, set: { ...values }, effective: writeSchedulingSettings(settings) };
}
