import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";

/** The values of a hint; empty if the request has none of that name. */
export function hintValues({ hints }: ServerSpec, name: string): readonly string[] {
  return hints.find((hint) => hint.name === name)?.values ?? [];
}

/** The first value of a hint, or undefined. */
export function hintValue(spec: ServerSpec, name: string): string | undefined {
  return hintValues(spec, name)[0];
}
