/** The parts of a NATS URL. */
export interface NatsTarget {
  /** `host:port` of each server of the cluster. */
  readonly servers: readonly string[];
  readonly user: string | undefined;
  readonly password: string | undefined;
  /** Options of a TLS connection, or undefined without TLS. The files are those of the parameters `ca`, `cert` and `key`. */
  readonly tls: { readonly caFile?: string; readonly certFile?: string; readonly keyFile?: string } | undefined;
  /** Copies of each stream that is made through this URL. When undefined, an existing stream keeps its copies and a new one gets one. */
  readonly replicas: number | undefined;
}

/** JetStream keeps at most this many copies. */
const replicasMax = 5;

/**
 * Reads `nats://user:password@one:4222,nats://user:password@two:4222?replicas=3`. The first server's user and password are used, and
 * parameters may stand at any server. `tls://` and `ca=FILE` require TLS, so that a server without TLS never learns the password. The
 * servers' certificates must be signed by one in FILE, or else by one that Node trusts. Throws when the text is not such a URL, or when
 * `replicas` is not a number from 1 to 5.
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
