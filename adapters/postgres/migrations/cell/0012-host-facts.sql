-- What schedulers look at beyond the ledger: hypervisors, and which servers are on which host.

-- As the host's agent tells it: HypervisorFacts of core/cell/hypervisor-facts.ts.
alter table hosts add column hypervisor jsonb not null default '{}';
alter publication berth_ledger drop table hosts;
alter publication berth_ledger add table hosts (name, root_provider, up, disabled, hypervisor);

-- Apart from the ledger: an api process needs no servers in memory, and is not sent them. No table of their own: their rows are
-- in the log anyway, so a boot writes nothing more for it.
create publication berth_servers for table servers (uuid, status, task_state, host, spec);
