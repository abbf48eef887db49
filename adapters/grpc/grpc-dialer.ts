import { type ClientDuplexStream, makeGenericClientConstructor, type ServiceError } from "@grpc/grpc-js";
import { AGENT_STOPS, type ConductorDialer, type ConductorStream } from "../../core/agent/link.ts";
import { AgentMessage, type ConductorFrame, type ConductorMessage } from "../../proto/gen/berth/agent.ts";
import { encodeMessage } from "../../runtime/encode-message.ts";
import { clientOf, readTlsFiles, type TlsFiles } from "./channel-options.ts";
import { FRAMED_SERVICE } from "./framed-service.ts";
import { GrpcStream } from "./grpc-stream.ts";

const Client = makeGenericClientConstructor(FRAMED_SERVICE, "berth.Conductors");

/**
 * Dials conductors, each stream over a connection of its own. A stream whose conductor has not answered within
 * `connectTimeoutMs` closes.
 */
export function createGrpcDialer(
  options: { readonly tls?: TlsFiles | null; readonly connectTimeoutMs?: number } = {},
): ConductorDialer {
  const tls = options.tls ? readTlsFiles(options.tls) : null;
  const connectTimeoutMs = options.connectTimeoutMs ?? 5_000;
  const open = new Set<ConductorStream>();
  return {
    dial(address) {
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
      call.on("error", (error: ServiceError) => over(error.details || error.message));
      call.on("end", () => over("the conductor closed the stream"));
      return stream;
    },
    close() {
      for (const stream of open) stream.close(AGENT_STOPS);
    },
  };
}
