import type { ClientBase } from "pg";
import type { HealOutcome } from "../../../core/audit/healing.ts";
import { CONSUMER_TYPE_INSTANCE, CONSUMER_TYPE_MIGRATION } from "../../../core/ledger/model.ts";
import { inHealing } from "./in-healing.ts";

/**
 * Releases all allocations of the consumer, provided that it belongs to no server with a home and to no unsettled move. Three kinds are
 * left alone: allocations of a server that lie elsewhere than the server (it is unknown which of the two is right), a server with an open
 * task, and consumers that clients of the Placement API made. `used` of each inventory that it held becomes the sum of the remaining
 * allocations.
 *
 * Locks, in the global order: the server's row, the consumer, inventories. A claim for the consumer needs the consumer's row, so the state
 * that is read under this lock holds until the transaction ends. A dispatch that waits for the lock claims afterwards.
 */
export function healOrphan(databaseUrl: string, uuid: string, isDryRun: boolean): Promise<HealOutcome> {
  return inHealing(databaseUrl, isDryRun, async (client) => {
    await client.query("select from servers where uuid = $1 for no key update", [uuid]);
    await lockConsumer(client, uuid);
    const holds = await readHolds(client, uuid);
    if (holds.length === 0) return { kind: "in-order" };
    const verdict = await judge(client, uuid);
    if (verdict.kind === "left") return verdict;
    await client.query(
      `select from inventories v
       where exists (select from allocations a where a.consumer_uuid = $1
         and a.provider_id = v.provider_id and a.class_id = v.class_id)
       order by v.provider_id, v.class_id for update`,
      [uuid],
    );
    await giveBack(client, uuid);
    return { kind: "healed", before: `${verdict.why}; it holds ${holds.join(", ")}`, after: "it holds nothing" };
  });
}

/** A consumer without a row may still have allocations. A row is made for it, so that claims meet on its lock. */
async function lockConsumer(client: ClientBase, uuid: string): Promise<void> {
  await client.query(
    `insert into consumers as r (uuid, generation, project_id, user_id, type) values ($1, 0, '', '', $2)
     on conflict (uuid) do update set generation = r.generation where false`,
    [uuid, CONSUMER_TYPE_INSTANCE],
  );
}

async function readHolds(client: ClientBase, uuid: string): Promise<readonly string[]> {
  const { rows } = await client.query<{ text: string }>(
    `select a.amount || ' ' || coalesce(c.name, 'of class ' || a.class_id) || ' of '
       || coalesce(p.uuid::text, 'provider number ' || a.provider_id) as text
     from allocations a
     left join resource_providers p on p.id = a.provider_id left join resource_classes c on c.id = a.class_id
     where a.consumer_uuid = $1 order by 1`,
    [uuid],
  );
  return rows.map((row) => row.text);
}

type Verdict = { readonly kind: "orphan"; readonly why: string } | { readonly kind: "left"; readonly why: string };

async function judge(client: ClientBase, uuid: string): Promise<Verdict> {
  const { rows } = await client.query<{
    type: string;
    status: string | null;
    host: string | null;
    open_task: boolean;
    move_ended: boolean | null;
    move_holds: boolean | null;
  }>(
    `select c.type, s.status, s.host, m.ended as move_ended, m.holds_source as move_holds,
       exists (select from tasks t where t.server_uuid = c.uuid and t.outcome is null) as open_task
     from consumers c left join servers s on s.uuid = c.uuid left join migrations m on m.uuid = c.uuid
     where c.uuid = $1`,
    [uuid],
  );
  const found = rows[0]!;
  if (found.type === CONSUMER_TYPE_MIGRATION) {
    if (found.move_ended === null) return { kind: "orphan", why: "there is no such move" };
    if (found.move_ended && !found.move_holds) return { kind: "orphan", why: "its move has ended" };
    return { kind: "left", why: "its move is not settled" };
  }
  if (found.type !== CONSUMER_TYPE_INSTANCE) return { kind: "left", why: `it is a consumer of type ${found.type}` };
  if (found.open_task) return { kind: "left", why: "a task of its server is open: a conductor will end it" };
  if (found.status === null) return { kind: "orphan", why: "there is no such server" };
  if (found.status === "DELETED" || found.status === "CLOSED")
    return { kind: "orphan", why: `its server is ${found.status}` };
  if (found.host === null) return { kind: "orphan", why: `its server is ${found.status} and has no host` };
  return {
    kind: "left",
    why: `its server is ${found.status} on ${found.host}: if they differ, only an operator can decide which of the two is right`,
  };
}

/** `used` becomes the sum of the remaining allocations instead of being lowered by the released ones, since it may have been wrong, too. */
async function giveBack(client: ClientBase, uuid: string): Promise<void> {
  const gone = await client.query<{ provider_id: number; class_id: number }>(
    "delete from allocations where consumer_uuid = $1 returning provider_id, class_id",
    [uuid],
  );
  await client.query(
    `update inventories v set used = coalesce(
       (select sum(a.amount) from allocations a where a.provider_id = v.provider_id and a.class_id = v.class_id), 0)
     from unnest($1::int[], $2::int[]) as w (provider_id, class_id)
     where v.provider_id = w.provider_id and v.class_id = w.class_id`,
    [gone.rows.map((row) => row.provider_id), gone.rows.map((row) => row.class_id)],
  );
  await client.query("delete from consumers where uuid = $1", [uuid]);
}
