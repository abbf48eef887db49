/** `2013-09-03T04:01:32Z`: how the Compute API writes most times. */
export function isoSeconds(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 19)}Z`;
}

/** `2013-09-23T13:37:00.880302`: how it writes those that come straight from a database; UTC. */
export function isoMicroseconds(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 23)}000`;
}
