import type { MemoryNetwork } from "../../adapters/memory/memory-network.ts";
import type { AgentListener, AgentStream } from "../../core/agent/link.ts";
import type { AgentMessage, AttemptReport, GuestState, Hello } from "../../proto/gen/berth/agent.ts";
import type { ServerSpec } from "../../proto/gen/berth/shared.ts";
import type { Closable } from "../../runtime/closable.ts";
import type { FakeScript } from "../../services/compute-agent/fake-script.ts";
import { serverSpec } from "../contract/cell-fixtures.ts";
import { eventually } from "./eventually.ts";

/** A new server comes from no host. */
const NOWHERE = { movedFromHost: "", movedFromAttemptId: "", movedBy: "" };

/** A fake conductor on a real wire. It welcomes agents and records their messages. */
export class WireConductor {
  readonly messages: NonNullable<AgentMessage["body"]>[] = [];
  readonly listener: AgentListener & Closable;
  stream: AgentStream | null = null;

  constructor(network: MemoryNetwork, address: string) {
    this.listener = network.listen(address);
    this.listener.onAgent((stream) => {
      this.stream = stream;
      stream.onMessages((messages) =>
        this.messages.push(...messages.flatMap(({ body }) => (body === undefined ? [] : [body]))),
      );
      stream.send({ body: { $case: "welcome", value: { conductorId: address, heartbeatMs: 1_000 } } });
    });
  }

  hellos(): Hello[] {
    return this.messages.flatMap((message) => (message.$case === "hello" ? [message.value] : []));
  }

  reports(attemptId: string): AttemptReport[] {
    return this.messages.flatMap((message) =>
      message.$case === "attempt" && message.value.attemptId === attemptId ? [message.value] : [],
    );
  }

  build(
    attempt: number,
    fake: FakeScript = {},
    timeoutMs = 60_000,
    spec: Partial<ServerSpec> = {},
    from = NOWHERE,
  ): void {
    const server = serverSpec(attempt, { metadata: { "berth:fake": JSON.stringify(fake) }, ...spec });
    const value = { host: "h", attemptId: `t${attempt}/0`, server, allocation: undefined, timeoutMs, traceparent: "" };
    this.stream?.send({ body: { $case: "build", value: { ...value, ...from } } });
  }

  order(what: "start" | "destroy", attempt: number, attemptId = `t${attempt}/0`): void {
    const value = { host: "h", serverUuid: serverSpec(attempt).uuid, attemptId };
    const start = { ...value, revision: 0, interfaces: undefined, files: [] };
    if (what === "destroy") this.stream?.send({ body: { $case: "destroy", value } });
    else this.stream?.send({ body: { $case: "start", value: start } });
  }

  state(attempt: number, state: GuestState): Promise<AttemptReport> {
    return eventually(`attempt ${attempt} to be ${state}`, () =>
      this.reports(`t${attempt}/0`).findLast((report) => report.state === state),
    );
  }

  destroyed(): Promise<unknown> {
    return eventually("the answer to the destroy", () =>
      this.messages.some((message) => message.$case === "destroyed"),
    );
  }
}
