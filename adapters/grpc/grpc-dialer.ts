import { type ClientDuplexStream, makeGenericClientConstructor, type ServiceError } from "@grpc/grpc-js";
import { AGENT_STOPS, type ConductorDialer, type ConductorStream } from "../../core/agent/link.ts";
import { AgentMessage, type ConductorFrame, type ConductorMessage } from "../../proto/gen/berth/agent.ts";
import { systemClock } from "../../runtime/clock.ts";
import { encodeMessage } from "../../runtime/encode-message.ts";
import { SettingsError } from "../../runtime/settings.ts";
import { expiredText } from "./certificate-expiry.ts";
import { clientOf, readTlsFiles, type TlsContents, type TlsFiles } from "./channel-options.ts";
import { FRAMED_SERVICE } from "./framed-service.ts";
import { GrpcStream } from "./grpc-stream.ts";

const Client = makeGenericClientConstructor(FRAMED_SERVICE, "berth.Conductors");

/**
 * Dials conductors, each stream over a connection of its own. A stream whose conductor has not answered within
 * `connectTimeoutMs` closes. The TLS files are read for each stream, so that a renewed certificate counts without a restart.
 */
export function createGrpcDialer(
  options: { readonly tls?: TlsFiles | null; readonly connectTimeoutMs?: number } = {},
): ConductorDialer {
  let tls = options.tls ? readTlsFiles(options.tls) : null;
  const connectTimeoutMs = options.connectTimeoutMs ?? 5_000;
  const open = new Set<ConductorStream>();
  return {
    dial(address) {
      if (options.tls) tls = renewed(options.tls) ?? tls;
      const { credentials, options: channel } = clientOf(tls, address);
      const client = new Client(address, credentials, channel);
      const call = (client.connect as unknown as () => ClientDuplexStream<Buffer, ConductorFrame>).call(client);
      const stream = new GrpcStream<AgentMessage, ConductorMessage>({
        call,
        encode: (message) => encodeMessage(AgentMessage, message),
        hangUp: () => release(),
      });
      const deadline = setTimeout(
        () => stream.close(`no answer from ${address} within ${connectTimeoutMs} ms`),
        connectTimeoutMs,
      );
      const release = () => {
        clearTimeout(deadline);
        open.delete(stream);
        call.cancel();
        client.close();
      };
      const over = (reason: string) => {
        stream.ended(reason);
        release();
      };
      open.add(stream);
      call.on("metadata", () => clearTimeout(deadline));
      call.on("error", (error: ServiceError) =>
        over(`${reasonOf(error)}${tls === null ? "" : expiredText(tls.cert, systemClock.now())}`),
      );
      call.on("end", () => over("the conductor closed the stream"));
      return stream;
    },
    close() {
      for (const stream of open) stream.close(AGENT_STOPS);
    },
  };
}

/** Returns null for files that are just being replaced, or were replaced by something else: then those that were read before are used. */
function renewed(tls: TlsFiles): TlsContents | null {
  try {
    return readTlsFiles(tls);
  } catch (error) {
    if (error instanceof SettingsError) return null;
    throw error;
  }
}

/** The reason of an error without the moment at which it occurred, so that the same reason is the same text each time. */
function reasonOf(error: ServiceError): string {
  return (error.details || error.message)
    .replace(/ \(\d{4}-\d\d-\d\dT[\d:.]+Z\)/, "")
    .replace(/\. Resolution note: $/, "");
}
