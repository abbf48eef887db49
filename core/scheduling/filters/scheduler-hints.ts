import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";

/** The values of a hint, or an empty list when the request has no hint of that name. */
export function hintValues({ hints }: ServerSpec, name: string): readonly string[] {
  return hints.find((hint) => hint.name === name)?.values ?? [];
}

export function hintValue(spec: ServerSpec, name: string): string | undefined {
  return hintValues(spec, name)[0];
}
