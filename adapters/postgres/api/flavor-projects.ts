import type { Pool } from "pg";
import { queryStored } from "../client/store-query.ts";

export async function readFlavorProjects(pool: Pool, flavorId: string): Promise<readonly string[]> {
  const rows = await queryStored<{ project_id: string }>(pool, {
    name: "flavor_projects",
    text: `select project_id from flavor_projects where flavor_id = $1 order by project_id collate "C"`,
    values: [flavorId],
  });
  return rows.map((row) => row.project_id);
}

export async function readFlavorsOfProject(pool: Pool, projectId: string): Promise<readonly string[]> {
  const rows = await queryStored<{ flavor_id: string }>(pool, {
    name: "flavors_of_project",
    text: "select flavor_id from flavor_projects where project_id = $1",
    values: [projectId],
  });
  return rows.map((row) => row.flavor_id);
}

/** The row of the flavor is locked, so that it is not deleted in between. */
export async function insertFlavorProject(
  pool: Pool,
  flavorId: string,
  projectId: string,
): Promise<"added" | "exists" | "unknown"> {
  const [row] = await queryStored<{ known: boolean; added: boolean }>(pool, {
    name: "add_flavor_project",
    text: `with flavor as (select id from flavors where id = $1 for key share), added as (
        insert into flavor_projects (flavor_id, project_id) select id, $2 from flavor on conflict do nothing returning flavor_id
      )
      select exists (select from flavor) as known, exists (select from added) as added`,
    values: [flavorId, projectId],
  });
  if (!row?.known) return "unknown";
  return row.added ? "added" : "exists";
}

export async function deleteFlavorProject(pool: Pool, flavorId: string, projectId: string): Promise<boolean> {
  const rows = await queryStored(pool, {
    name: "remove_flavor_project",
    text: "delete from flavor_projects where flavor_id = $1 and project_id = $2 returning flavor_id",
    values: [flavorId, projectId],
  });
  return rows.length > 0;
}
