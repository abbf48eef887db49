import { trait } from "../../ledger/ids.ts";
import { contradiction } from "./hardware-request.ts";
import { badImageProperty } from "./request-refusal.ts";
import type { TranslationRule } from "./translation-rule.ts";

const PREFIX = "trait:";
const NAME = /^[A-Z0-9_]{1,255}$/;

/**
 * Reads an image's `trait:NAME=required` as if it were an extra spec of the flavor for its unnumbered group. It refuses a trait that the
 * flavor forbids.
 */
export const imageTraits: TranslationRule = ({ flavor, imageProperties }, draft) => {
  for (const [key, value] of Object.entries(imageProperties)) {
    if (!key.startsWith(PREFIX)) continue;
    if (value !== "required") return badImageProperty(key, value, "required");
    const name = key.slice(PREFIX.length);
    if (!NAME.test(name))
      return badImageProperty(key, value, "a key whose name consists of upper-case letters, digits and _");
    if (flavor.extraSpecs[key] === "forbidden")
      return contradiction(
        { key, value: "forbidden" },
        { key, value },
        "one requires the trait and the other forbids it",
      );
    draft.group("").required.add(trait(name));
  }
  return null;
};
