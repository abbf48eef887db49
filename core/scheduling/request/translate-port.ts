import type { PortResourceRequest } from "../../../proto/gen/berth/shared.ts";
import { assert } from "../../assert.ts";
import type { HostRequest } from "../host-request.ts";
import { HostRequestDraft } from "./host-request-draft.ts";
import { portGroups } from "./port-groups.ts";

/** The host request for ports alone, without their server. It uses the same rule as that for a new server. */
export function translatePort(portRequests: readonly PortResourceRequest[]): HostRequest {
  const draft = new HostRequestDraft();
  portGroups({ portRequests }, draft);
  const translated = draft.finish();
  assert(translated.kind === "host-request", "the request groups of ports contradict nothing");
  return translated.hostRequest;
}
