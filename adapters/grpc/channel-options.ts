import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { checkServerIdentity, type PeerCertificate } from "node:tls";
import { ChannelCredentials, type ChannelOptions, ServerCredentials } from "@grpc/grpc-js";
import { isLoopbackHost } from "../../runtime/loopback.ts";

/** Paths of PEM files. `ca` signs the other side; both sides show `cert`. */
export interface TlsFiles {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/**
 * Largest frame that is taken. Frames are cut at `FRAME_BYTES`, but one message is never cut: a Hello of an agent that
 * carries thousands of hosts is the only one that gets near this.
 */
export const FRAME_BYTES_MAX = 64 * 1024 * 1024;
/** Messages are added to a frame until it is this big. */
export const FRAME_BYTES = 512 * 1024;
/** Messages that may wait for a slow reader; one more closes the stream. */
export const QUEUED_MESSAGES_MAX = 200_000;

/**
 * Both sides ask for a sign of life on an idle connection; a peer whose machine is gone is noticed within 15 s (the
 * heartbeats of the stream itself are quicker). No retries by gRPC: a stream cannot be replayed.
 */
export const CHANNEL_OPTIONS: ChannelOptions = {
  "grpc.keepalive_time_ms": 10_000,
  "grpc.keepalive_timeout_ms": 5_000,
  "grpc.keepalive_permit_without_calls": 1,
  "grpc.max_receive_message_length": FRAME_BYTES_MAX,
  "grpc.max_send_message_length": FRAME_BYTES_MAX,
  "grpc-node.flow_control_window": 4 * 1024 * 1024,
  "grpc.enable_retries": 0,
  "grpc.enable_http_proxy": 0,
  "grpc.use_local_subchannel_pool": 1,
  "grpc.initial_reconnect_backoff_ms": 100,
  "grpc.max_reconnect_backoff_ms": 1_000,
};

export interface Client {
  readonly credentials: ChannelCredentials;
  readonly options: ChannelOptions;
}

/** Stands where TLS wants a name and there is none: the certificate is checked for the address itself. */
const NO_NAME = "address.invalid";

/** What the files hold. */
export type TlsContents = Readonly<Record<keyof TlsFiles, Buffer>>;

/** Throws when one cannot be read. */
export function readTlsFiles(tls: TlsFiles): TlsContents {
  return { ca: readFileSync(tls.ca), cert: readFileSync(tls.cert), key: readFileSync(tls.key) };
}

/** What a client dials `address` (host:port) with. The other side's certificate must be for that host, by name or by address. */
export function clientOf(tls: TlsContents | null, address: string): Client {
  if (tls === null) return { credentials: ChannelCredentials.createInsecure(), options: CHANNEL_OPTIONS };
  const { ca, key, cert } = tls;
  const host = hostOf(address);
  if (isIP(host) === 0) return { credentials: ChannelCredentials.createSsl(ca, key, cert), options: CHANNEL_OPTIONS };
  const check = (_: string, certificate: PeerCertificate) => checkServerIdentity(host, certificate);
  return {
    credentials: ChannelCredentials.createSsl(ca, key, cert, { checkServerIdentity: check }),
    options: { ...CHANNEL_OPTIONS, "grpc.ssl_target_name_override": NO_NAME },
  };
}

/** With TLS the server takes only clients whose certificate the CA signed. */
export function serverCredentials(tls: TlsFiles | null): ServerCredentials {
  if (tls === null) return ServerCredentials.createInsecure();
  const { ca, key, cert } = readTlsFiles(tls);
  return ServerCredentials.createSsl(ca, [{ private_key: key, cert_chain: cert }], true);
}

/** Whether `host:port` can be reached from this machine alone, so that plain text harms nobody. */
export function isLoopback(address: string): boolean {
  return isLoopbackHost(hostOf(address));
}

function hostOf(address: string): string {
  return address.slice(0, address.lastIndexOf(":")).replace(/^\[|\]$/g, "");
}
