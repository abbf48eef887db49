import type { Pool } from "pg";
import type { Logger } from "../../runtime/logger.ts";
import { createPool, type PoolOptions } from "./pool.ts";

/** A service's pool for one of its databases, which the log calls `what`: it tells of connections that were lost. */
export function openLoggedPool(
  options: Omit<PoolOptions, "onConnectionLost"> & { readonly what: string; readonly logger: Logger },
): Pool {
  const { what, logger, ...rest } = options;
  return createPool({
    ...rest,
    onConnectionLost: (error) => logger.warn({ err: error, database: what }, "database connection lost"),
  });
}
