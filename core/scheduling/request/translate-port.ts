import type { PortResourceRequest } from "../../../proto/gen/berth/shared.ts";
import { assert } from "../../assert.ts";
import type { PlacementQuery } from "../placement-query.ts";
import { portGroups } from "./port-groups.ts";
import { QueryDraft } from "./query-draft.ts";

/** The query for ports alone, without their server. It uses the same rule as the query for a new server. */
export function translatePort(portRequests: readonly PortResourceRequest[]): PlacementQuery {
  const draft = new QueryDraft();
  portGroups({ portRequests }, draft);
  const translated = draft.finish();
  assert(translated.kind === "query", "the request groups of ports contradict nothing");
  return translated.query;
}
