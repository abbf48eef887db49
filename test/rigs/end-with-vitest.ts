/**
 * Ends this worker when Vitest's main process has ended, such as by a signal. Otherwise it would run its file to the end, with all services that the file
 * has started, which may take hours. SIGKILL, since Vitest refuses calls of `process.exit` by tests.
 */
process.once("disconnect", () => process.kill(process.pid, "SIGKILL"));
