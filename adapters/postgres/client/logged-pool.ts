import type { Pool } from "pg";
import type { Logger } from "../../../runtime/logger.ts";
import { createPool, type PoolOptions } from "./pool.ts";
import { singleHostUrls } from "./postgres-url.ts";
import { warnOfLostCommits } from "./warn-of-lost-commits.ts";

/**
 * A service's pool for one of its databases, whose name in the log is `what`. It logs lost connections and, when the database has several
 * servers, that a failover may lose commits.
 */
export function openLoggedPool(
  options: Omit<PoolOptions, "onConnectionLost"> & { readonly what: string; readonly logger: Logger },
): Pool {
  const { what, logger, ...rest } = options;
  const pool = createPool({
    ...rest,
    onConnectionLost: (error) =>
      logger.warn(
        { err: error, database: what },
        "a connection to the database was lost; the pool opens another one when it is needed",
      ),
  });
  // The first connection checks the server's settings before it is used for anything else.
  if ((singleHostUrls(options.url)?.length ?? 1) > 1)
    pool.once("connect", (client) => void warnOfLostCommits(client, { what, logger }));
  return pool;
}
