import { Type } from "typebox";
import { Value } from "typebox/value";
import type { QuotaLimits } from "../../../../core/stores/api/quota-limits.ts";
import { base64Data } from "../../../../core/tasks/base64-data.ts";
import type { InjectedFile } from "../../../../proto/gen/berth/shared.ts";
import { badRequest, Fault } from "../../http/fault.ts";

/** The last microversion whose calls may put files into a guest. */
export const PERSONALITY_UNTIL_MINOR = 56;
/** Bounds for projects without a quota. The size of the whole spec is checked, too. */
const FILES_MAX = 256;
const PATH_CHARACTERS_MAX = 4_096;
const CONTENTS_CHARACTERS_MAX = 1_048_576;

/** The files of a call that creates or rebuilds a server. Source: `personality` of Nova's `parameter_types`. */
export const Personality = Type.Array(
  Type.Object(
    {
      path: Type.String({ minLength: 1, maxLength: PATH_CHARACTERS_MAX }),
      contents: Type.String({ maxLength: CONTENTS_CHARACTERS_MAX }),
    },
    { additionalProperties: false },
  ),
  { maxItems: FILES_MAX },
);
type Personality = Type.Static<typeof Personality>;

/** Reads the files of a rebuild, whose body has no schema. */
export function readRebuildPersonality(value: unknown): InjectedFile[] {
  if (value !== undefined && !Value.Check(Personality, value))
    throw badRequest(
      `Invalid input for field/attribute personality. It is not a list of at most ${FILES_MAX} objects with path and contents.`,
    );
  return readPersonality(value);
}

/** Refuses contents that are not base64. They may be a secret, so no message has them. */
export function readPersonality(personality: Personality = []): InjectedFile[] {
  return personality.map(({ path, contents }, index) => {
    if (base64Data(contents) === null)
      throw badRequest(`Invalid input for field/attribute personality[${index}].contents. It is not a 'base64'`);
    return { path, contents };
  });
}

/** Refuses more files, longer paths or larger files than the quota allows. Source: `_check_injected_file_quota` of Nova's compute API. */
export function refuseManyFiles(files: readonly InjectedFile[], limits: QuotaLimits): void {
  const exceeds = (is: number, limit: number): boolean => limit >= 0 && is > limit;
  if (exceeds(files.length, limits.injected_files)) throw new Fault(403, "Personality file limit exceeded");
  const pathMax = limits.injected_file_path_bytes;
  if (files.some(({ path }) => exceeds(Buffer.byteLength(path), pathMax)))
    throw new Fault(403, `Personality file path exceeds maximum ${pathMax}`);
  const contentMax = limits.injected_file_content_bytes;
  if (files.some(({ contents }) => exceeds(Buffer.from(contents, "base64").length, contentMax)))
    throw new Fault(403, `Personality file content exceeds maximum ${contentMax}`);
}
