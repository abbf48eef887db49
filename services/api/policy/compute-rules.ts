/** The rules to which other rules refer. The last two are of old policy files. */
const BASE = {
  context_is_admin: "role:admin",
  project_manager_api: "role:manager and project_id:%(project_id)s",
  project_member_api: "role:member and project_id:%(project_id)s",
  project_reader_api: "role:reader and project_id:%(project_id)s",
  service_api: "role:service",
  project_manager_or_admin: "rule:project_manager_api or rule:context_is_admin",
  project_member_or_admin: "rule:project_member_api or rule:context_is_admin",
  project_reader_or_admin: "rule:project_reader_api or rule:context_is_admin",
  service_or_admin: "rule:service_api or rule:context_is_admin",
  admin_api: "is_admin:True",
  admin_or_owner: "is_admin:True or project_id:%(project_id)s",
} as const;

/** What a rule demands by default, and the rules that demand it, without the beginning `os_compute_api:`. */
const DEMANDS: Readonly<Record<string, readonly string[]>> = {
  "@": ["extensions", "limits", "os-availability-zone:list", "os-floating-ip-pools", "os-quota-sets:defaults"],
  "(rule:context_is_admin) or user_id:%(user_id)s": words(
    "os-keypairs:index os-keypairs:create os-keypairs:delete os-keypairs:show",
  ),
  "rule:service_or_admin": words(`
    os-assisted-volume-snapshots:create os-assisted-volume-snapshots:delete
    os-server-external-events:create os-volumes-attachments:swap`),
  "rule:project_reader_or_admin": words(`
    ips:index ips:show
    os-attach-interfaces:list os-attach-interfaces:show
    os-flavor-extra-specs:index os-flavor-extra-specs:show
    os-floating-ips:list os-floating-ips:show
    os-instance-actions:list os-instance-actions:show
    os-networks:list os-networks:show
    os-quota-sets:detail os-quota-sets:show
    os-security-groups:get os-security-groups:list os-security-groups:show
    os-server-groups:index os-server-groups:show
    os-server-password:show
    os-server-shares:index os-server-shares:show
    os-server-tags:index os-server-tags:show
    os-simple-tenant-usage:show
    os-tenant-networks:list os-tenant-networks:show
    os-volumes:detail os-volumes:list os-volumes:show
    os-volumes:snapshots:detail os-volumes:snapshots:list os-volumes:snapshots:show
    os-volumes-attachments:index os-volumes-attachments:show
    server-metadata:index server-metadata:show
    servers:detail servers:index servers:show servers:show:flavor-extra-specs
    compute:server:topology:index
  `),
  "rule:project_member_or_admin": words(`
    os-admin-password os-console-output os-create-backup
    os-attach-interfaces:create os-attach-interfaces:delete
    os-deferred-delete:force os-deferred-delete:restore
    os-floating-ips:add os-floating-ips:create os-floating-ips:delete os-floating-ips:remove
    os-lock-server:lock os-lock-server:unlock
    os-multinic:add os-multinic:remove
    os-pause-server:pause os-pause-server:unpause
    os-remote-consoles os-rescue os-unrescue
    os-security-groups:add os-security-groups:create os-security-groups:delete os-security-groups:remove
    os-security-groups:rule:create os-security-groups:rule:delete os-security-groups:update
    os-server-groups:create os-server-groups:delete
    os-server-password:clear
    os-server-shares:create os-server-shares:delete
    os-server-tags:delete os-server-tags:delete_all os-server-tags:update os-server-tags:update_all
    os-shelve:shelve os-shelve:unshelve
    os-suspend-server:resume os-suspend-server:suspend
    os-volumes:create os-volumes:delete os-volumes:snapshots:create os-volumes:snapshots:delete
    os-volumes-attachments:create os-volumes-attachments:delete os-volumes-attachments:update
    server-metadata:create server-metadata:delete server-metadata:update server-metadata:update_all
    servers:confirm_resize servers:create servers:create:attach_network servers:create:attach_volume
    servers:create:trusted_certs servers:rebuild:trusted_certs
    servers:create_image servers:create_image:allow_volume_backed servers:delete servers:reboot servers:rebuild servers:resize servers:revert_resize
    servers:start servers:stop servers:trigger_crash_dump servers:update
  `),
  "rule:project_manager_or_admin": words(`
    os-migrate-server:migrate os-migrate-server:migrate_live
    os-migrations:index
    servers:migrations:delete servers:migrations:force_complete servers:migrations:index
  `),
  "rule:context_is_admin": words(`
    limits:other_project
    os-admin-actions:inject_network_info os-admin-actions:reset_state
    os-aggregates:add_host os-aggregates:create os-aggregates:delete os-aggregates:index os-aggregates:remove_host
    os-aggregates:set_metadata os-aggregates:show os-aggregates:update
    os-availability-zone:detail
    os-baremetal-nodes:list os-baremetal-nodes:show
    os-console-auth-tokens
    os-evacuate
    os-extended-server-attributes
    os-flavor-access os-flavor-access:add_tenant_access os-flavor-access:remove_tenant_access
    os-flavor-extra-specs:create os-flavor-extra-specs:delete os-flavor-extra-specs:update
    os-flavor-manage:create os-flavor-manage:delete os-flavor-manage:update
    os-hosts:list os-hosts:reboot os-hosts:show os-hosts:shutdown os-hosts:start os-hosts:update
    os-hypervisors:list os-hypervisors:list-detail os-hypervisors:search os-hypervisors:servers os-hypervisors:show
    os-hypervisors:statistics os-hypervisors:uptime
    os-instance-actions:events os-instance-actions:events:details
    os-instance-usage-audit-log:list os-instance-usage-audit-log:show
    os-lock-server:unlock:unlock_override
    os-migrate-server:migrate:host os-migrate-server:migrate_live:host
    os-migrations:index:all_projects os-migrations:index:host
    os-quota-class-sets:show os-quota-class-sets:update os-quota-sets:delete os-quota-sets:update
    os-server-diagnostics
    os-server-groups:index:all_projects
    os-services:delete os-services:list os-services:update
    os-shelve:shelve_offload os-shelve:unshelve_to_host
    os-simple-tenant-usage:list
    servers:allow_all_filters servers:create:forced_host
    servers:detail:get_all_tenants servers:index:get_all_tenants
    servers:migrations:index:host servers:migrations:show
    servers:show:host_status servers:show:host_status:unknown-only
    servers:create:zero_disk_flavor
    compute:aggregates:images compute:server:topology:host:index compute:servers:create:requested_destination
    network:attach_external_network
  `),
};

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

/** The name that a rule has in policy files. In Nova, newer rules begin with `compute:`. */
export function policyName(rule: string): string {
  return /^(?:compute|network):/.test(rule) || rule in BASE ? rule : `os_compute_api:${rule}`;
}

/**
 * The rules of the Compute API with their defaults. Every rule is of the scope of a project.
 *
 * Source: Nova's policies with `enforce_new_defaults` (https://docs.openstack.org/nova/latest/configuration/policy.html).
 */
export function computeDefaults(): Readonly<Record<string, string>> {
  const entries = Object.entries(DEMANDS).flatMap(([demand, rules]) =>
    rules.map((rule) => [policyName(rule), demand] as const),
  );
  return { ...BASE, ...Object.fromEntries(entries) };
}
