import type { QuotaExcess, QuotaLimits, ServerResource } from "../../../../core/stores/api/quota-limits.ts";
import { Fault } from "../../http/fault.ts";

/** Returns the 403 of a call whose servers exceed a quota. `asked` has what the call asks for, by resource. Source: Nova's `TooManyInstances`. */
export function overQuota(excess: QuotaExcess, asked: Readonly<Record<ServerResource, number | string>>): Fault {
  const { overs, used, limits } = excess;
  const listed = (values: Readonly<Record<ServerResource, number | string>>) =>
    overs.map((resource) => values[resource]).join(", ");
  const names = overs.join(", ");
  return new Fault(
    403,
    `Quota exceeded for ${names}: Requested ${listed(asked)}, but already used ${listed(used)} of ${listed(limits)} ${names}`,
  );
}

/** Refuses more items of metadata than the quota allows. */
export function refuseManyItems(metadata: Readonly<Record<string, string>> | undefined, limits: QuotaLimits): void {
  const allowed = limits.metadata_items;
  if (allowed >= 0 && Object.keys(metadata ?? {}).length > allowed)
    throw new Fault(403, `Maximum number of metadata items exceeds ${allowed}`);
}

/** Refuses files to inject that the quotas do not allow. The contents are decoded. */
export function refuseManyFiles(
  files: readonly { readonly path: string; readonly content: { readonly length: number } }[],
  limits: QuotaLimits,
): void {
  const exceeds = (count: number, allowed: number) => allowed >= 0 && count > allowed;
  if (exceeds(files.length, limits.injected_files)) throw new Fault(403, "Personality file limit exceeded");
  const pathMax = Math.max(0, ...files.map(({ path }) => path.length));
  if (exceeds(pathMax, limits.injected_file_path_bytes))
    throw new Fault(403, `Personality file path exceeds maximum ${limits.injected_file_path_bytes}`);
  const contentMax = Math.max(0, ...files.map(({ content }) => content.length));
  if (exceeds(contentMax, limits.injected_file_content_bytes))
    throw new Fault(403, `Personality file content exceeds maximum ${limits.injected_file_content_bytes}`);
}
