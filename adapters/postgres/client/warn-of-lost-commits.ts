import type { PoolClient } from "pg";
import type { Logger } from "../../../runtime/logger.ts";

/** Settings of a Postgres server that decide whether a commit survives a failover. */
export interface CommitSettings {
  readonly synchronous_commit: string;
  readonly synchronous_standby_names: string;
  readonly fsync: string;
}

/** Why a promoted standby may lack commits that were acknowledged. Null when it lacks none. */
export function lostCommits(settings: CommitSettings): string | null {
  const { synchronous_commit: commit, synchronous_standby_names: standbys, fsync } = settings;
  if (standbys.trim() === "") return "synchronous_standby_names is empty, so no commit waits for a standby";
  if (commit === "off" || commit === "local")
    return `synchronous_commit is ${commit}, so no commit waits for a standby`;
  if (fsync === "off") return "fsync is off, so a crash of the server may lose commits";
  return null;
}

/**
 * Warns in the log when the database may lose commits in a failover. `what` is the database's name in the log. Called when the URL names
 * several servers. Never rejects: a server that does not answer does not prevent the start.
 */
export async function warnOfLostCommits(
  client: Pick<PoolClient, "query">,
  { what, logger }: { readonly what: string; readonly logger: Logger },
): Promise<void> {
  try {
    const { rows } = await client.query<CommitSettings>(
      `select current_setting('synchronous_commit') as synchronous_commit,
        current_setting('synchronous_standby_names') as synchronous_standby_names, current_setting('fsync') as fsync`,
    );
    const reason = rows[0] === undefined ? null : lostCommits(rows[0]);
    if (reason !== null)
      logger.warn(
        { database: what, reason },
        "the database's URL names several servers, but a failover between them may lose commits that were already acknowledged, and with them claims and servers. Set up synchronous replication: " +
          "see docs/operating.md, High availability of Postgres",
      );
  } catch (error) {
    logger.debug(
      { err: error, database: what },
      "the server could not be asked whether its commits wait for a standby",
    );
  }
}
