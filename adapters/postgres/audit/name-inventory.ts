import { withClient } from "../client/databases.ts";

/** The name of an inventory for people, `VCPU of provider NAME (UUID)`. A removed class or provider is named by its number. */
export function nameInventory(
  databaseUrl: string,
  inventory: { readonly providerId: number; readonly classId: number },
): Promise<string> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ text: string }>(
      `select coalesce((select name from resource_classes where id = $2), 'class ' || $2) || ' of provider '
        || coalesce((select name || ' (' || uuid || ')' from resource_providers where id = $1), 'number ' || $1) as text`,
      [inventory.providerId, inventory.classId],
    );
    return rows[0]!.text;
  });
}
