-- Whether operators have limited the servers of one of these projects, or those of all projects. It is a function because PostgreSQL keeps the plan of
-- a PL/pgSQL function; as a subquery of the calling statement it would be planned each time.
create or replace function has_server_quotas(projects text[]) returns boolean language plpgsql stable as $$
begin
  return exists (select from quota_classes c where c.class = 'default' and c.resource in ('instances', 'cores', 'ram') and c.hard_limit >= 0)
    or exists (select from quotas q where q.project_id = any (projects) and q.resource in ('instances', 'cores', 'ram') and q.hard_limit >= 0);
end
$$;
