import { readFileSync } from "node:fs";
import { isIP } from "node:net";
import { checkServerIdentity, createSecureContext, type PeerCertificate } from "node:tls";
import { ChannelCredentials, type ChannelOptions, ServerCredentials } from "@grpc/grpc-js";
import { isLoopbackHost } from "../../runtime/loopback.ts";
import { SettingsError } from "../../runtime/settings.ts";

/** Paths of PEM files. `ca` is the certificate authority that signs the other side's certificate; each side presents its own `cert`. */
export interface TlsFiles {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

/**
 * Largest frame that is accepted. Frames are cut at `FRAME_BYTES`, but a single message is never split. Only the Hello of an agent that
 * carries thousands of hosts comes near this limit: it has room for 300,000 guests.
 */
export const FRAME_BYTES_MAX = 32 * 1024 * 1024;
/** Messages are added to a frame until it reaches this size. */
export const FRAME_BYTES = 512 * 1024;
/** Maximum number of messages that may wait for a slow reader. One more closes the stream. */
export const QUEUED_MESSAGES_MAX = 200_000;

/**
 * Both sides send keepalive pings on an idle connection, so a peer whose machine is gone is noticed within 15 s. The heartbeats of the
 * stream itself are quicker. gRPC does not retry, because a stream cannot be replayed.
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

/**
 * TLS requires a server name, and an IP address is none. This name takes its place; the certificate is checked against the address itself.
 */
const NO_NAME = "address.invalid";

/** The contents of the TLS files. */
export type TlsContents = Readonly<Record<keyof TlsFiles, Buffer>>;

/** Throws a SettingsError, which names the setting, when one of the files cannot be read or is not what it should be. */
export function readTlsFiles(tls: TlsFiles): TlsContents {
  const files = { ca: readTlsFile(tls, "ca"), cert: readTlsFile(tls, "cert"), key: readTlsFile(tls, "key") };
  try {
    createSecureContext(files);
  } catch (error) {
    const { ca, cert, key } = tls;
    throw new SettingsError(
      `--tls-ca ${ca}, --tls-cert ${cert} and --tls-key ${key} cannot be used (${(error as Error).message}): give a CA's certificate, this process's own, and the key of the latter, each as PEM`,
    );
  }
  return files;
}

function readTlsFile(tls: TlsFiles, part: keyof TlsFiles): Buffer {
  try {
    return readFileSync(tls[part]);
  } catch (error) {
    throw new SettingsError(
      `BERTH_TLS_${part.toUpperCase()} (--tls-${part}) cannot be read: ${(error as Error).message}`,
    );
  }
}

/**
 * The credentials and options to dial `address` (host:port) with. The other side's certificate must be valid for that host, by name or by
 * address.
 */
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

/** With TLS the server accepts only clients whose certificate the CA signed. */
export function serverCredentials(tls: TlsFiles | null): ServerCredentials {
  if (tls === null) return ServerCredentials.createInsecure();
  const { ca, key, cert } = readTlsFiles(tls);
  return ServerCredentials.createSsl(ca, [{ private_key: key, cert_chain: cert }], true);
}

/** Whether `host:port` can only be reached from this machine, so that plain text does no harm. */
export function isLoopback(address: string): boolean {
  return isLoopbackHost(hostOf(address));
}

function hostOf(address: string): string {
  return address.slice(0, address.lastIndexOf(":")).replace(/^\[|\]$/g, "");
}
