import type { HTTPMethods } from "fastify";
import type { Http } from "../../http/create-http.ts";
import { Fault } from "../../http/fault.ts";

/** Nova's answer, at every microversion, for a feature that it has removed. */
export function gone(): Fault {
  return new Fault(410, "This resource is no longer available. No forwarding address is given.");
}

/** The routes that Nova has removed for every microversion, with their methods. Source: Nova's `routes.py`. */
export const REMOVED_ROUTES: readonly (readonly [url: string, ...methods: HTTPMethods[]])[] = [
  ["/os-agents", "GET", "POST"],
  ["/os-agents/:id", "PUT", "DELETE"],
  ["/os-cells", "GET", "POST"],
  ["/os-cells/capacities", "GET"],
  ["/os-cells/detail", "GET"],
  ["/os-cells/info", "GET"],
  ["/os-cells/sync_instances", "POST"],
  ["/os-cells/:id", "GET", "PUT", "DELETE"],
  ["/os-cells/:id/capacities", "GET"],
  ["/os-certificates", "POST"],
  ["/os-certificates/:id", "GET"],
  ["/os-cloudpipe", "GET", "POST"],
  ["/os-cloudpipe/:id", "PUT"],
  ["/os-fixed-ips/:id", "GET"],
  ["/os-fixed-ips/:id/action", "POST"],
  ["/os-floating-ip-dns", "GET"],
  ["/os-floating-ip-dns/:id", "PUT", "DELETE"],
  ["/os-floating-ip-dns/:id/entries/:name", "GET", "PUT", "DELETE"],
  ["/os-floating-ips-bulk", "GET", "POST"],
  ["/os-floating-ips-bulk/:id", "GET", "PUT"],
  ["/os-fping", "GET"],
  ["/os-fping/:id", "GET"],
  ["/os-security-group-default-rules", "GET", "POST"],
  ["/os-security-group-default-rules/:id", "GET", "DELETE"],
  ["/servers/:id/consoles", "GET", "POST"],
  ["/servers/:id/consoles/:consoleId", "GET", "DELETE"],
  ["/servers/:id/os-virtual-interfaces", "GET"],
];

/** Answers with 410 on the routes that Nova has removed, so that old clients learn that they need not look for another version. */
export function registerRemovedRoutes(http: Http): void {
  const refuse = async () => {
    throw gone();
  };
  for (const [url, ...methods] of REMOVED_ROUTES)
    for (const method of methods) http.route({ method, url, config: { removed: true }, handler: refuse });
}
