import { Metadata, Server, type ServerDuplexStream, status } from "@grpc/grpc-js";
import { type AgentListener, type AgentStream, CONDUCTOR_STOPS } from "../../core/agent/link.ts";
import { type AgentFrame, type AgentMessage, ConductorMessage } from "../../proto/gen/berth/agent.ts";
import type { Closable } from "../../runtime/closable.ts";
import { encodeMessage } from "../../runtime/encode-message.ts";
import { SettingsError } from "../../runtime/settings.ts";
import { permitOfCertificate } from "./certificate-permit.ts";
import { CHANNEL_OPTIONS, isLoopback, serverCredentials, type TlsFiles } from "./channel-options.ts";
import { FRAMED_SERVICE } from "./framed-service.ts";
import { GrpcStream } from "./grpc-stream.ts";

/** How long agents have to hang up by themselves when the listener closes. */
const SHUTDOWN_MS = 500;
/** An agent has one stream over each connection. Without a limit it could open tens of thousands at once, which would keep other agents waiting for seconds. */
const STREAMS_MAX = 4;

/**
 * Listens for agents at `listen` (host:port; port 0 picks a free one). Without TLS it refuses to listen beyond this machine, unless
 * `plainText` says that the network is trusted.
 */
export async function createGrpcAgentListener(options: {
  readonly listen: string;
  readonly tls?: TlsFiles | null;
  readonly plainText?: boolean;
}): Promise<AgentListener & Closable> {
  const tls = options.tls ?? null;
  if (tls === null && options.plainText !== true && !isLoopback(options.listen)) {
    throw new SettingsError(
      `BERTH_LISTEN (--listen) is ${options.listen} and there is no TLS: any client that reaches that address could act as any host of the cell. Give --tls-ca, --tls-cert and --tls-key, listen on 127.0.0.1, or allow plain text where the network is trusted (--plain-text)`,
    );
  }
  let arrived: Parameters<AgentListener["onAgent"]>[0] = (stream) => stream.close("the conductor is not ready");
  const streams = new Set<AgentStream>();
  const server = new Server({ ...CHANNEL_OPTIONS, "grpc.max_concurrent_streams": STREAMS_MAX });
  server.addService(FRAMED_SERVICE, {
    connect(call: ServerDuplexStream<AgentFrame, Buffer>) {
      const stream = streamOf(call, () => streams.delete(stream));
      streams.add(stream);
      call.sendMetadata(new Metadata());
      arrived(stream, tls === null ? null : permitOfCertificate(call.getAuthContext()?.sslPeerCertificate?.raw));
    },
  });
  const port = await bind(server, options.listen, tls);
  return {
    address: `${options.listen.slice(0, options.listen.lastIndexOf(":"))}:${port}`,
    onAgent(handler) {
      arrived = handler;
    },
    async close() {
      for (const stream of streams) stream.close(CONDUCTOR_STOPS);
      await shutDown(server);
    },
  };
}

function streamOf(call: ServerDuplexStream<AgentFrame, Buffer>, gone: () => void): AgentStream {
  const stream = new GrpcStream<ConductorMessage, AgentMessage>({
    call,
    encode: (message) => encodeMessage(ConductorMessage, message),
    hangUp: (reason) => {
      gone();
      call.emit("error", { code: status.UNAVAILABLE, details: reason });
    },
  });
  const over = (reason: string) => {
    stream.ended(reason);
    gone();
  };
  call.on("cancelled", () => over("the agent closed the stream, or its connection was lost"));
  call.on("error", (error: Error) => over(error.message));
  call.on("end", () => {
    over("the agent closed the stream");
    call.end();
  });
  return stream;
}

function bind(server: Server, listen: string, tls: TlsFiles | null): Promise<number> {
  return new Promise((resolve, reject) => {
    server.bindAsync(listen, serverCredentials(tls), (error, port) => (error === null ? resolve(port) : reject(error)));
  });
}

function shutDown(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const force = setTimeout(() => server.forceShutdown(), SHUTDOWN_MS);
    server.tryShutdown(() => {
      clearTimeout(force);
      resolve();
    });
  });
}
