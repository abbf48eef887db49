/** The number of servers whose classes are counted, in place of a resource class. No class has lower-case letters. */
export const COUNTED = "servers";

/** Says of a row of `requests` that its classes leave the sums together with it. Without this the database has the project counted anew. */
export const CLASSES_ASIDE = "classes_aside = case when classes is not null then true end";

/** How many rows the usage of one user in one project is spread over. */
const SHARDS = 8;

/**
 * Returns the text of a CTE `name`, which adds (`sign` 1) or takes away (-1) the rows of the CTE `servers` in `quota_usages`. The rows have
 * the columns `project_id`, `user_id`, `cores` and `ram_mib`. Locks by project and user. Cost: one row a user and project.
 */
export function countUsage(name: string, servers: string, sign: 1 | -1): string {
  return `${name} as (
      insert into quota_usages as u (project_id, user_id, shard, instances, cores, ram_mib)
      select s.project_id, s.user_id, pg_backend_pid() % ${SHARDS}, ${sign} * count(*), ${sign} * sum(s.cores), ${sign} * sum(s.ram_mib)
      from ${servers} s group by 1, 2 order by 1, 2
      on conflict (project_id, user_id, shard) do update set instances = u.instances + excluded.instances,
        cores = u.cores + excluded.cores, ram_mib = u.ram_mib + excluded.ram_mib
    )`;
}

/**
 * Returns the text of a CTE `name`, which adds (`sign` 1) or takes away (-1) the rows of the CTE `servers` in `quota_class_usages`. The rows have the columns
 * `project_id` and `classes`; one without classes is not counted. Locks by project and class. Cost: one row a project and class.
 */
export function countClasses(name: string, servers: string, sign: 1 | -1): string {
  return `${name} as (
      insert into quota_class_usages as u (project_id, class, shard, amount)
      select s.project_id, c.key, pg_backend_pid() % ${SHARDS}, ${sign} * sum(c.value::bigint)
      from ${servers} s cross join lateral jsonb_each_text(s.classes || '{"${COUNTED}": 1}') c
      where s.classes is not null group by 1, 2 order by 1, 2
      on conflict (project_id, class, shard) do update set amount = u.amount + excluded.amount
    )`;
}
