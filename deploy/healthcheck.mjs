// `node healthcheck.mjs PORT`: exits with 0 when the service of this container reports that it is ready.
try {
  const answer = await fetch(`http://127.0.0.1:${process.argv[2]}/readyz`, { signal: AbortSignal.timeout(3_000) });
  process.exitCode = answer.ok ? 0 : 1;
} catch {
  process.exitCode = 1;
}
