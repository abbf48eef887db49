/** Returns the name under which a host would know a server's guest, as Nova shows it to admins. */
export function instanceNameOf(serverUuid: string): string {
  return `instance-${serverUuid.slice(0, 8)}`;
}
