/** What a NATS URL says. */
export interface NatsTarget {
  /** `host:port` of each server of the cluster. */
  readonly servers: readonly string[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** What a TLS connection is made with; undefined without TLS. The files are those of the parameters `ca`, `cert` and `key`. */
  readonly tls: { readonly caFile?: string; readonly certFile?: string; readonly keyFile?: string } | undefined;
  /** Copies of each stream that is made through it; undefined: as many as there are, or one. */
  readonly replicas: number | undefined;
}

/** JetStream knows no more. */
const replicasMax = 5;

/**
 * Reads `nats://user:password@one:4222,nats://user:password@two:4222?replicas=3`: user and password are the first one's,
 * parameters may stand at any. With `tls://`, and with `ca=FILE` (whose certificates the servers' must be signed by; else those
 * that Node trusts), a server without TLS is not told the password. Throws on what is no URL, and on other numbers of replicas than
 * 1 to 5.
 */
export function readNatsUrl(url: string): NatsTarget {
  const parts = url.split(",").map((part) => new URL(part.trim()));
  const first = parts[0] as URL;
  const given = new Map(parts.flatMap((part) => [...part.searchParams]));
  const text = given.get("replicas");
  const replicas = text === undefined ? undefined : Number(text);
  if (replicas !== undefined && !(Number.isInteger(replicas) && replicas >= 1 && replicas <= replicasMax)) {
    throw new Error(`replicas=${text} in a NATS URL: allowed are 1 to ${replicasMax}`);
  }
  return {
    servers: parts.map((part) => part.host),
    tls: parts.some((part) => part.protocol === "tls:") || given.has("ca") ? tlsOf(given) : undefined,
    user: first.username === "" ? undefined : decodeURIComponent(first.username),
    password: first.password === "" ? undefined : decodeURIComponent(first.password),
    replicas,
  };
}

function tlsOf(given: ReadonlyMap<string, string>): NatsTarget["tls"] {
  const files = [
    ["caFile", given.get("ca")] as const,
    ["certFile", given.get("cert")] as const,
    ["keyFile", given.get("key")] as const,
  ];
  return Object.fromEntries(files.filter(([, file]) => file !== undefined));
}
