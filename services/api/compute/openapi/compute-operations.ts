/** The parts of an operation's description that its route does not have. */
export interface ComputeOperation {
  readonly id: string;
  readonly summary: string;
  /** The statuses of answers to calls that succeed. */
  readonly good: readonly number[];
  /** Further statuses of refusals, beside those that follow from the route (compute-document.ts). */
  readonly refusals?: readonly number[];
}

const one = (id: string, summary: string, good: readonly number[], refusals: readonly number[] = []) => ({
  ...{ id, summary, good, refusals },
});

/** The operations of the Compute API, by method and path. */
export const COMPUTE_OPERATIONS: Readonly<Record<string, ComputeOperation>> = {
  "GET /": one("showVersion", "Show the version of the API", [200]),
  "GET /openapi.json": one("showDocument", "Show this document", [200]),
  "GET /versions/{id}": one("showNamedVersion", "Show a version of the API by its name", [200]),
  "GET /extensions": one("listExtensions", "List the extensions", [200]),
  "GET /extensions/{alias}": one("showExtension", "Show an extension", [200]),
  "GET /limits": one("showLimits", "Show the limits of a project and its use of them", [200]),

  "GET /servers": one("listServers", "List servers, with their names only", [200], [404]),
  "POST /servers": one("createServer", "Create one or several servers", [202], [404, 409]),
  "GET /servers/detail": one("listServersInDetail", "List servers with all their fields", [200], [404]),
  "GET /servers/{id}": one("showServer", "Show a server", [200]),
  "PUT /servers/{id}": one("updateServer", "Change a server's name, description, hostname or addresses", [200], [409]),
  "DELETE /servers/{id}": one("deleteServer", "Delete a server", [204], [409]),
  "POST /servers/{id}/action": one("runServerAction", "Run an action on a server", [200, 202, 204], [409, 410, 501]),
  "GET /servers/{id}/diagnostics": one("showServerDiagnostics", "Show a server's diagnostics", [200], [409]),
  "GET /servers/{id}/ips": one("listServerAddresses", "List a server's addresses", [200]),
  "GET /servers/{id}/ips/{label}": one("showServerAddresses", "Show a server's addresses in one network", [200]),
  "GET /servers/{id}/metadata": one("listServerMetadata", "List a server's metadata", [200]),
  "POST /servers/{id}/metadata": one("addServerMetadata", "Add or change items of metadata", [200], [409]),
  "PUT /servers/{id}/metadata": one("replaceServerMetadata", "Replace all metadata", [200], [409]),
  "GET /servers/{id}/metadata/{key}": one("showServerMetadata", "Show an item of metadata", [200]),
  "PUT /servers/{id}/metadata/{key}": one("setServerMetadata", "Set an item of metadata", [200], [409]),
  "DELETE /servers/{id}/metadata/{key}": one("deleteServerMetadata", "Delete an item of metadata", [204], [409]),
  "GET /servers/{id}/migrations": one("listServerMigrations", "List live migrations that are under way", [200]),
  "GET /servers/{id}/migrations/{migrationId}": one("showServerMigration", "Show a live migration", [200]),
  "DELETE /servers/{id}/migrations/{migrationId}": one("abortServerMigration", "Abort a live migration", [202], [409]),
  "POST /servers/{id}/migrations/{migrationId}/action": one(
    "runServerMigrationAction",
    "Run an action on a live migration",
    [202],
    [409],
  ),
  "GET /servers/{id}/os-instance-actions": one("listInstanceActions", "List the actions on a server", [200]),
  "GET /servers/{id}/os-instance-actions/{requestId}": one(
    "showInstanceAction",
    "Show an action on a server and its events",
    [200],
  ),
  "GET /servers/{id}/os-interface": one("listInterfaces", "List a server's ports", [200]),
  "POST /servers/{id}/os-interface": one("attachInterface", "Attach a port to a server", [200], [409]),
  "GET /servers/{id}/os-interface/{portId}": one("showInterface", "Show a port of a server", [200]),
  "DELETE /servers/{id}/os-interface/{portId}": one("detachInterface", "Detach a port from a server", [202], [409]),
  "GET /servers/{id}/os-security-groups": one("listServerSecurityGroups", "List a server's security groups", [200]),
  "GET /servers/{id}/os-server-password": one("showServerPassword", "Show the password that a guest has set", [200]),
  "DELETE /servers/{id}/os-server-password": one("clearServerPassword", "Remove the password from the record", [204]),
  "GET /servers/{id}/os-volume_attachments": one("listVolumeAttachments", "List a server's volumes", [200]),
  "POST /servers/{id}/remote-consoles": one(
    "openRemoteConsole",
    "Open a server's console for one client",
    [200],
    [409],
  ),
  "GET /os-console-auth-tokens/{token}": one("showConsoleToken", "Show where the console of a token is", [200]),

  "GET /servers/{id}/tags": one("listServerTags", "List a server's tags", [200]),
  "PUT /servers/{id}/tags": one("replaceServerTags", "Replace a server's tags", [200], [409]),
  "DELETE /servers/{id}/tags": one("deleteServerTags", "Delete all tags of a server", [204], [409]),
  "GET /servers/{id}/tags/{tag}": one("checkServerTag", "Check whether a server has a tag", [204]),
  "PUT /servers/{id}/tags/{tag}": one("addServerTag", "Add a tag to a server", [201, 204], [409]),
  "DELETE /servers/{id}/tags/{tag}": one("deleteServerTag", "Delete a tag of a server", [204], [409]),
  "GET /servers/{id}/topology": one("showServerTopology", "Show a server's NUMA topology", [200]),

  "GET /flavors": one("listFlavors", "List flavors, with their names only", [200]),
  "POST /flavors": one("createFlavor", "Create a flavor", [200], [409]),
  "GET /flavors/detail": one("listFlavorsInDetail", "List flavors with all their fields", [200]),
  "GET /flavors/{id}": one("showFlavor", "Show a flavor", [200]),
  "PUT /flavors/{id}": one("updateFlavor", "Change a flavor's description", [200]),
  "DELETE /flavors/{id}": one("deleteFlavor", "Delete a flavor", [202]),
  "POST /flavors/{id}/action": one(
    "runFlavorAction",
    "Give a project access to a flavor, or take it away",
    [200],
    [409],
  ),
  "GET /flavors/{flavorId}/os-flavor-access": one("listFlavorAccess", "List the projects that may use a flavor", [200]),
  "GET /flavors/{flavorId}/os-extra_specs": one("listExtraSpecs", "List a flavor's extra specs", [200]),
  "POST /flavors/{flavorId}/os-extra_specs": one("addExtraSpecs", "Add or change extra specs", [200]),
  "GET /flavors/{flavorId}/os-extra_specs/{key}": one("showExtraSpec", "Show an extra spec", [200]),
  "PUT /flavors/{flavorId}/os-extra_specs/{key}": one("setExtraSpec", "Set an extra spec", [200]),
  "DELETE /flavors/{flavorId}/os-extra_specs/{key}": one("deleteExtraSpec", "Delete an extra spec", [200]),

  "GET /images": one("listImages", "List images, with their names only", [200]),
  "GET /images/detail": one("listImagesInDetail", "List images with all their fields", [200]),
  "GET /images/{id}": one("showImage", "Show an image", [200]),

  "GET /os-aggregates": one("listAggregates", "List host aggregates", [200]),
  "POST /os-aggregates": one("createAggregate", "Create a host aggregate", [200], [409]),
  "GET /os-aggregates/{id}": one("showAggregate", "Show a host aggregate", [200]),
  "PUT /os-aggregates/{id}": one("updateAggregate", "Change the name or the zone of a host aggregate", [200], [409]),
  "DELETE /os-aggregates/{id}": one("deleteAggregate", "Delete a host aggregate without hosts", [200]),
  "POST /os-aggregates/{id}/action": one("runAggregateAction", "Change the hosts or the metadata", [200], [409]),
  "GET /os-availability-zone": one("listZones", "List the availability zones", [200]),
  "GET /os-availability-zone/detail": one("listZonesInDetail", "List the availability zones with their hosts", [200]),

  "GET /os-hosts": one("listHosts", "List hosts", [200]),
  "GET /os-hosts/{name}": one("showHost", "Show what a host has and what is used of it", [200]),
  "PUT /os-hosts/{name}": one("updateHost", "Enable or disable a host", [200], [501]),
  "GET /os-hosts/{name}/reboot": one("rebootHost", "Not supported by any driver (501)", [], [501]),
  "GET /os-hosts/{name}/shutdown": one("shutDownHost", "Not supported by any driver (501)", [], [501]),
  "GET /os-hosts/{name}/startup": one("startHost", "Not supported by any driver (501)", [], [501]),
  "GET /os-hypervisors": one("listHypervisors", "List hypervisors, with their names only", [200], [404]),
  "GET /os-hypervisors/detail": one("listHypervisorsInDetail", "List hypervisors with all fields", [200], [404]),
  "GET /os-hypervisors/statistics": one("showHypervisorStatistics", "Show the sums over all hypervisors", [200]),
  "GET /os-hypervisors/{id}": one("showHypervisor", "Show a hypervisor", [200]),
  "GET /os-hypervisors/{id}/search": one("searchHypervisors", "Find hypervisors by a part of their names", [200]),
  "GET /os-hypervisors/{id}/servers": one("listHypervisorServers", "List the servers of hypervisors", [200]),
  "GET /os-hypervisors/{id}/uptime": one("showHypervisorUptime", "Show how long a hypervisor has run", [200], [501]),
  "GET /os-services": one("listServices", "List schedulers, conductors and compute services", [200]),
  "PUT /os-services/{id}": one("updateService", "Enable, disable or force down a compute service", [200]),
  "GET /os-migrations": one("listMigrations", "List moves, past and present", [200], [404]),
  "POST /os-server-external-events": one("createExternalEvents", "Report events about servers", [200, 207]),

  "GET /os-keypairs": one("listKeypairs", "List a user's key pairs", [200]),
  "POST /os-keypairs": one("createKeypair", "Import or create a key pair", [200, 201], [409]),
  "GET /os-keypairs/{name}": one("showKeypair", "Show a key pair", [200]),
  "DELETE /os-keypairs/{name}": one("deleteKeypair", "Delete a key pair", [202, 204]),

  "GET /os-quota-class-sets/{id}": one("showQuotaClass", "Show the limits of a quota class", [200]),
  "PUT /os-quota-class-sets/{id}": one("updateQuotaClass", "Change the limits of a quota class", [200]),
  "GET /os-quota-sets/{id}": one("showQuotas", "Show a project's limits", [200]),
  "PUT /os-quota-sets/{id}": one("updateQuotas", "Change a project's limits", [200]),
  "DELETE /os-quota-sets/{id}": one("deleteQuotas", "Return to the default limits", [202]),
  "GET /os-quota-sets/{id}/defaults": one("showDefaultQuotas", "Show the default limits", [200]),
  "GET /os-quota-sets/{id}/detail": one("showQuotasInDetail", "Show a project's limits and their use", [200]),

  "GET /os-server-groups": one("listServerGroups", "List server groups", [200]),
  "POST /os-server-groups": one("createServerGroup", "Create a server group", [200]),
  "GET /os-server-groups/{id}": one("showServerGroup", "Show a server group", [200]),
  "DELETE /os-server-groups/{id}": one("deleteServerGroup", "Delete a server group", [204]),

  "GET /os-simple-tenant-usage": one("listUsage", "List the usage of all projects", [200]),
  "GET /os-simple-tenant-usage/{id}": one("showUsage", "Show the usage of a project", [200]),
  "GET /os-instance_usage_audit_log": one("showAuditLog", "Show the usage audits of the last month", [200]),
  "GET /os-instance_usage_audit_log/{before}": one("showAuditLogBefore", "Show the audits before a time", [200]),
};
