import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { HostFilter } from "../../core/scheduling/filters/host-filter.ts";
import { nameClash } from "../../core/scheduling/filters/host-filters.ts";
import { SettingsError } from "../../runtime/settings.ts";

/**
 * Loads host filters from the user's own modules. The default export of each module is a HostFilter or a list of them. Throws a
 * SettingsError that names the module when it cannot be loaded, when it exports something else, or when two filters have the same name.
 */
export async function loadHostFilters(paths: readonly string[]): Promise<readonly HostFilter[]> {
  const filters: HostFilter[] = [];
  for (const path of paths) {
    const given = await defaultExportOf(path);
    for (const filter of Array.isArray(given) ? given : [given]) {
      if (!isHostFilter(filter))
        throw new SettingsError(
          `${path}: its default export is not a host filter: export an object that has name, decidedBy and bind`,
        );
      filters.push(filter);
    }
  }
  const clash = nameClash(filters);
  if (clash !== null) throw new SettingsError(`${paths.join(", ")}: ${clash}`);
  return filters;
}

async function defaultExportOf(path: string): Promise<unknown> {
  try {
    const loaded: { readonly default?: unknown } = await import(pathToFileURL(resolve(path)).href);
    return loaded.default;
  } catch (error) {
    throw new SettingsError(`${path}: ${error instanceof Error ? error.message : error}`);
  }
}

function isHostFilter(value: unknown): value is HostFilter {
  const { name, decidedBy, bind } = (value ?? {}) as Partial<Record<keyof HostFilter, unknown>>;
  const isNamed = typeof name === "string" && name !== "";
  return isNamed && (decidedBy === "kind" || decidedBy === "request") && typeof bind === "function";
}
