import { type Answer, json } from "../http.ts";
import { MAX_MINOR, MIN_MINOR } from "../microversion.ts";

/** GET / lists the versions without a token. The link is relative, so that it works behind any proxy. */
export function showVersions(): Answer {
  const version = {
    id: `v1.${MIN_MINOR}`,
    max_version: `1.${MAX_MINOR}`,
    min_version: `1.${MIN_MINOR}`,
    status: "CURRENT",
    links: [{ rel: "self", href: "" }],
  };
  return json({ versions: [version] }, Date.now());
}
