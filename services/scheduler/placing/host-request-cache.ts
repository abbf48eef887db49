import { askedOf } from "../../../core/scheduling/request/asked.ts";
import { PLAIN_CONTEXT, type RequestContext } from "../../../core/scheduling/request/request-context.ts";
import { type RequestTranslation, translateRequest } from "../../../core/scheduling/request/translate-request.ts";
import type { ServerSpec } from "../../../proto/gen/berth/shared.ts";

const QUERIES_MAX = 1_000;

/**
 * Remembers the translation of each kind of request. There are few kinds and many requests, so each kind is translated only once per
 * context.
 */
export class HostRequestCache {
  readonly #queries = new Map<string, RequestTranslation>();
  #context = PLAIN_CONTEXT;

  /** Returns null when the request has no flavor. */
  of(spec: ServerSpec, context: RequestContext = PLAIN_CONTEXT): RequestTranslation | null {
    const asked = askedOf(spec);
    if (asked === null) return null;
    if (context !== this.#context || this.#queries.size >= QUERIES_MAX) {
      this.#queries.clear();
      this.#context = context;
    }
    const { flavor, imageProperties, portRequests, availabilityZone, forcedHost, requestedHost, sharesVolumes } = asked;
    // Port ids are replaced by the index of the first group with the same id, because only it matters which groups share a port.
    const ports = portRequests.map(({ portId, suffix, resources, requiredTraits }) => {
      const first = portRequests.findIndex((other) => other.portId === portId);
      return [first, suffix, resources, requiredTraits];
    });
    const project = context.settings.limitTenantsToPlacementAggregate ? asked.projectId : "";
    const place = [availabilityZone, forcedHost, requestedHost, project];
    const key = JSON.stringify([flavor, imageProperties, ports, sharesVolumes, place]);
    const known = this.#queries.get(key);
    if (known) return known;
    const hostRequest = translateRequest(asked, context);
    this.#queries.set(key, hostRequest);
    return hostRequest;
  }
}
