import type { PortResourceRequest } from "../../../proto/gen/berth/shared.ts";
import { assert } from "../../assert.ts";
import type { PlacementQuery } from "../placement-query.ts";
import { portGroups } from "./port-groups.ts";
import { QueryDraft } from "./query-draft.ts";

/** What ports ask, without the server that they are given to: the same rule as for one that is new. */
export function translatePort(portRequests: readonly PortResourceRequest[]): PlacementQuery {
  const draft = new QueryDraft();
  portGroups({ portRequests }, draft);
  const translated = draft.finish();
  assert(translated.kind === "query", "the request groups of ports contradict nothing");
  return translated.query;
}
