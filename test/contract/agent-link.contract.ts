import { afterEach, describe, expect, test } from "vitest";
import type { AgentListener, AgentStream, ConductorDialer, ConductorStream } from "../../core/agent/link.ts";
import type { AgentMessage, ConductorMessage } from "../../proto/gen/berth/agent.ts";
import type { Closable } from "../../runtime/closable.ts";

export interface LinkSubject {
  readonly listener: AgentListener & Closable;
  readonly dialer: ConductorDialer;
  /** An address at which no process listens. */
  readonly nobody: string;
}

const report = (reason: string): AgentMessage => ({
  body: {
    $case: "attempt",
    value: { host: "h", serverUuid: "s", attemptId: "a", state: 4, failure: 1, reason, step: "", listensAt: "" },
  },
});
const start = (host: string): ConductorMessage => ({
  body: {
    $case: "start",
    value: { host, serverUuid: "s", attemptId: "a", revision: 0, interfaces: undefined, files: [] },
  },
});
const reasonOf = (message: AgentMessage): string =>
  message.body?.$case === "attempt" ? message.body.value.reason : "?";
const hostOf = (message: ConductorMessage): string => (message.body?.$case === "start" ? message.body.value.host : "?");

/** Resolves with the first value of `read` that is not null. Reads after each turn of the event loop. */
async function eventually<T>(what: string, read: () => T | null): Promise<T> {
  // On a busy machine the largest messages take half a minute.
  const deadline = performance.now() + 90_000;
  for (;;) {
    const value = read();
    if (value !== null) return value;
    if (performance.now() > deadline) throw new Error(`waited in vain for ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function connect(subject: LinkSubject): {
  agent: ConductorStream;
  conductor: Promise<AgentStream>;
  received: AgentMessage[][];
} {
  const received: AgentMessage[][] = [];
  const conductor = new Promise<AgentStream>((resolve) => {
    subject.listener.onAgent((stream) => {
      stream.onMessages((messages) => received.push([...messages]));
      resolve(stream);
    });
  });
  return { agent: subject.dialer.dial(subject.listener.address), conductor, received };
}

/** The guarantees of both implementations of the link between agents and conductors. */
export function agentLinkContract(name: string, makeSubject: () => Promise<LinkSubject>): void {
  describe(`the agent link over ${name}`, () => {
    let subject: LinkSubject | null = null;
    const make = async () => {
      subject = await makeSubject();
      return subject;
    };
    afterEach(async () => {
      subject?.dialer.close();
      await subject?.listener.close();
      subject = null;
    });

    test("carries messages both ways, in order", async () => {
      const { agent, conductor, received } = connect(await make());
      const answers: string[] = [];
      agent.onMessages((messages) => answers.push(...messages.map(hostOf)));
      for (let index = 0; index < 2_000; index += 1) agent.send(report(`${index}`));
      const stream = await conductor;
      for (let index = 0; index < 2_000; index += 1) stream.send(start(`${index}`));
      const expected = Array.from({ length: 2_000 }, (_, index) => `${index}`);
      await eventually("all reports", () => (received.flat().length === 2_000 ? true : null));
      await eventually("all answers", () => (answers.length === 2_000 ? true : null));
      expect(received.flat().map(reasonOf)).toEqual(expected);
      expect(answers).toEqual(expected);
    });

    test("puts the messages of one turn into one frame", async () => {
      const { agent, received } = connect(await make());
      for (let index = 0; index < 50; index += 1) agent.send(report(`${index}`));
      await eventually("the frame", () => (received.length > 0 ? true : null));
      expect(received.map((frame) => frame.length)).toEqual([50]);
    });

    test("delivers more than a full buffer to a reader that was slow", async () => {
      const { agent, received } = connect(await make());
      const big = "x".repeat(10_000);
      for (let index = 0; index < 3_000; index += 1) agent.send(report(`${index}:${big}`));
      const reasons = await eventually("all of it", () =>
        received.flat().length === 3_000 ? received.flat().map(reasonOf) : null,
      );
      expect(reasons.every((reason, index) => reason === `${index}:${big}`)).toBe(true);
    });

    test("tells both ends once when the agent closes, and sends nothing afterwards", async () => {
      const { agent, conductor, received } = connect(await make());
      const closes: string[] = [];
      agent.onClose(() => closes.push("agent"));
      const stream = await conductor;
      stream.onClose(() => closes.push("conductor"));
      agent.close("enough");
      agent.close("twice");
      agent.send(report("too late"));
      await eventually("both ends", () => (closes.length >= 2 ? true : null));
      expect([...closes].sort()).toEqual(["agent", "conductor"]);
      expect([agent.closed, stream.closed, received.flat().length]).toEqual([true, true, 0]);
    });

    test("tells the agent why the conductor closed", async () => {
      const { agent, conductor } = connect(await make());
      let reason: string | null = null;
      agent.onClose((why) => {
        reason = why;
      });
      (await conductor).close("silent for too long");
      expect(await eventually("the reason", () => reason)).toBe("silent for too long");
    });

    test("closes a stream to an address without a listener", async () => {
      const { dialer, nobody } = await make();
      const stream = dialer.dial(nobody);
      let reason: string | null = null;
      stream.onClose((why) => {
        reason = why;
      });
      stream.send(report("into the void"));
      expect(await eventually("the reason", () => reason)).not.toBe("");
      expect(stream.closed).toBe(true);
    });

    test("closes every stream when the listener closes, and a new one can be dialled later", async () => {
      const { listener, agent, conductor } = await make().then((made) => ({ ...made, ...connect(made) }));
      let closed = false;
      agent.onClose(() => {
        closed = true;
      });
      await conductor;
      await listener.close();
      await eventually("the agent's end", () => (closed ? true : null));
    });
  });
}
