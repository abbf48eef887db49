/** What a NATS URL says. */
export interface NatsTarget {
  /** `host:port` of each server of the cluster. */
  readonly servers: readonly string[];
  /** It says `tls://`: a server without TLS is not told the password. */
  readonly tlsOnly: boolean;
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** Copies of each stream that is made through it; undefined: as many as there are, or one. */
  readonly replicas: number | undefined;
}

/** JetStream knows no more. */
const replicasMax = 5;

/**
 * Reads `nats://user:password@one:4222,nats://user:password@two:4222?replicas=3`: user and password are the first one's,
 * `replicas` may stand at any. Throws on what is no URL, and on other numbers of replicas than 1 to 5.
 */
export function readNatsUrl(url: string): NatsTarget {
  const parts = url.split(",").map((part) => new URL(part.trim()));
  const first = parts[0] as URL;
  const text = parts.map((part) => part.searchParams.get("replicas")).find((given) => given !== null);
  const replicas = text === undefined || text === null ? undefined : Number(text);
  if (replicas !== undefined && !(Number.isInteger(replicas) && replicas >= 1 && replicas <= replicasMax)) {
    throw new Error(`replicas=${text} in a NATS URL: allowed are 1 to ${replicasMax}`);
  }
  return {
    servers: parts.map((part) => part.host),
    tlsOnly: parts.some((part) => part.protocol === "tls:"),
    user: first.username === "" ? undefined : decodeURIComponent(first.username),
    password: first.password === "" ? undefined : decodeURIComponent(first.password),
    replicas,
  };
}
