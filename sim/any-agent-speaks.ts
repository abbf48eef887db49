import type { AgentListener, AgentStream } from "../core/agent/link.ts";
import type { AgentMessage } from "../proto/gen/berth/agent.ts";
import { overriding } from "../runtime/overriding.ts";

/**
 * A bug: reports about a host count whichever agent sends them. They are delivered as if they came over the stream of the agent that carries
 * the host.
 */
export function anyAgentSpeaks<Listener extends AgentListener>(listener: Listener): Listener {
  const carriers = new Map<
    string,
    { readonly stream: AgentStream; readonly hear: (messages: readonly AgentMessage[]) => void }
  >();
  const forward = (stream: AgentStream): AgentStream =>
    overriding(stream, {
      onClose: (handler) =>
        stream.onClose((reason) => {
          for (const [host, carrier] of carriers) if (carrier.stream === stream) carriers.delete(host);
          handler(reason);
        }),
      onMessages: (own) =>
        stream.onMessages((messages) => {
          for (const message of messages) {
            const { body } = message;
            if (body?.$case === "hello")
              for (const { host } of body.value.hosts)
                if (!carriers.has(host)) carriers.set(host, { stream, hear: own });
            const host = body !== undefined && "host" in body.value ? body.value.host : "";
            (carriers.get(host)?.hear ?? own)([message]);
          }
        }),
    });
  return overriding<AgentListener>(listener, {
    onAgent: (handler) => listener.onAgent((stream, permit) => handler(forward(stream), permit)),
  }) as Listener;
}
