import { type TObject, type TProperties, Type } from "typebox";
import { Value } from "typebox/value";
import { CHAOS_FAULTS, type HistoryLine } from "../history-line.ts";

const Text = Type.String();
const Texts = Type.Array(Text);
const Ms = Type.Number();
const Id = Type.Integer({ minimum: 1 });
const Op = Type.Enum(["create", "delete", "show", "list"]);

/** Additional fields are accepted, because later versions may write more. */
const line = (fields: TProperties): TObject => Type.Object({ atMs: Ms, who: Text, ...fields });

const FAULT = line({
  fault: Type.Enum([...CHAOS_FAULTS, "own"]),
  faultId: Id,
  target: Text,
  detail: Type.Optional(Text),
});
const ANSWER = line({
  op: Op,
  id: Id,
  ms: Ms,
  server: Type.Optional(Text),
  status: Type.Optional(Type.Integer()),
  reason: Type.Optional(Text),
  twice: Type.Optional(Texts),
});
const SETTLED = line({ open: Type.Integer({ minimum: 0 }), ms: Ms });

const LINES: Readonly<Record<HistoryLine["what"], TObject>> = {
  start: line({ plan: Text, target: Type.Enum(["local", "compose"]), seed: Type.Number(), parts: Texts }),
  invoke: line({ op: Op, id: Id, server: Type.Optional(Text) }),
  ok: ANSWER,
  refused: ANSWER,
  unknown: ANSWER,
  state: line({
    server: Text,
    state: Type.Enum(["ACTIVE", "ERROR", "DELETED"]),
    ms: Ms,
    host: Type.Optional(Text),
    attempts: Type.Optional(Type.Integer()),
    reasons: Type.Optional(Texts),
  }),
  found: line({ id: Id, server: Text }),
  "fault-begins": FAULT,
  "fault-ends": FAULT,
  died: line({ part: Text, detail: Text }),
  settled: SETTLED,
  "not-settled": SETTLED,
  verdict: line({ law: Type.Integer({ minimum: 1, maximum: 5 }), holds: Type.Boolean(), violations: Texts }),
  end: line({ passed: Type.Boolean(), failures: Texts }),
};

/** Why a value is not a line of a history, beginning with the field; null when it is one. */
export function faultOfLine(value: unknown): string | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "an object is wanted";
  const { what } = value as Partial<HistoryLine>;
  if (typeof what !== "string") return "what: is missing";
  if (!Object.hasOwn(LINES, what)) return `what: ${what.slice(0, 40)} is none of ${Object.keys(LINES).join(", ")}`;
  if (Value.Check(LINES[what], value)) return null;
  const [first] = Value.Errors(LINES[what], value);
  const field = first?.instancePath.slice(1).replaceAll("/", ".") ?? "";
  return field === "" ? `${first?.message}` : `${field}: ${first?.message}`;
}
