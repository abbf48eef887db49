import { eventually } from "../rigs/eventually.ts";
import type { Figures } from "./command/figures.ts";
import type { OpenstackClient } from "./openstack-client.ts";
import type { Step } from "./session-steps.ts";

/** Two processes of the client, since one has one microversion of the Compute API. */
export interface SessionClients {
  readonly oldest: OpenstackClient;
  readonly newest: OpenstackClient;
}

/** A cell on a machine that is busy with other work may not answer in time. Its users are told so (503), and ask again. */
const SILENT = /503[\s\S]*does not answer/;
const TRIES_MAX = 5;

/**
 * Runs the steps one after the other, also after one that failed, and returns what was wrong. Each fault is printed when it is found, since the rest
 * may take a quarter of an hour. `kept` stores what `{name}` stands for.
 */
export async function runSession(
  steps: readonly Step[],
  { oldest, newest }: SessionClients,
  kept = new Map<string, string>(),
): Promise<readonly string[]> {
  const wrong: string[] = [];
  const note = (fault: string) => {
    wrong.push(fault);
    process.stdout.write(`wrong: ${fault}\n`);
  };
  // A busy machine takes long, and each look starts a command.
  const patience = { everyMs: 1_000, withinMs: 300_000 };

  async function settle(server: string, status: string | null): Promise<void> {
    await eventually(
      `${server} is ${status ?? "gone"}`,
      async () => {
        const words = ["server", "show", server, "-f", "json", "-c", "status", "-c", "OS-EXT-STS:task_state"];
        const { code, out } = await oldest.run(words);
        if (code !== 0) return status === null;
        const shown = JSON.parse(out);
        return shown.status === status && shown["OS-EXT-STS:task_state"] === null;
      },
      patience,
    );
  }

  async function settleVolume(volume: string, status: string): Promise<void> {
    await eventually(
      `volume ${volume} is ${status}`,
      async () => {
        const { out } = await oldest.run(["volume", "show", volume, "-f", "value", "-c", "status"]);
        return out.trim() === status;
      },
      patience,
    );
  }

  /** Returns what is wrong with the answer, or null. */
  async function judge(step: Extract<Step, { kind: "command" }>): Promise<string | null> {
    const words = step.words.replace(/\{(\w+)\}/g, (_all, name) => kept.get(name) ?? "");
    const client = step.newer ? newest : oldest;
    let answer = await client.run(words.split(" "));
    for (let tries = 1; tries < TRIES_MAX && SILENT.test(answer.errors); tries += 1)
      answer = await client.run(words.split(" "));
    const { code, out, errors } = answer;
    if (step.keepAs !== null) kept.set(step.keepAs, out.trim());
    const isAsExpected =
      step.fails === null ? code === 0 && (step.shows?.test(out) ?? true) : code !== 0 && step.fails.test(out + errors);
    return isAsExpected ? null : `${words}: ${code}: ${(errors || out).slice(0, 1_000)}`;
  }

  for (const step of steps) {
    if (step.kind !== "command") {
      const settled =
        step.kind === "settle" ? settle(step.server, step.status) : settleVolume(step.volume, step.status);
      await settled.catch((error: unknown) => note(String(error)));
      continue;
    }
    const fault = await judge(step);
    if (fault !== null) note(fault);
  }
  return wrong;
}

/** The number of different commands of the steps. The same one with another microversion counts once. */
export function commandsOf(steps: readonly Step[]): number {
  return new Set(steps.flatMap((step) => (step.kind === "command" ? [step.words] : []))).size;
}

/** The steps that went as expected, and the others. A wait for a state counts as a step. */
export function figuresOf(steps: readonly Step[], wrong: readonly string[]): Figures {
  const notes = [`${commandsOf(steps)} different commands, and the waits between them`];
  return { passed: steps.length - wrong.length, failed: wrong.length, notes };
}
