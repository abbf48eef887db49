const CONNECTIONS_MAX = 12;

/**
 * Repeats work on a database server that did not take the connection in time: a busy machine may run nothing of the server for seconds. Other errors, and the last one of these,
 * are the work's own.
 */
export async function connectedInTime<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      // Node-pg has no code for it.
      const isLate =
        error instanceof Error &&
        /^(timeout expired|Connection terminated due to connection timeout)$/.test(error.message);
      if (!isLate || tries === CONNECTIONS_MAX) throw error;
    }
  }
}
