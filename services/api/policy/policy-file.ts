import { type FSWatcher, watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { parse, YAMLParseError } from "yaml";
import type { Clock, Timer } from "../../../runtime/clock.ts";
import { SettingsError } from "../../../runtime/settings.ts";
import type { Policy } from "./policy.ts";

/** Events of a policy file that an operator may want to know. */
export interface PolicyFileEvents {
  policyLoaded(path: string, overrides: number): void;
  /** The old rules stay in force. `reason` is one line. */
  policyRefused(path: string, reason: string): void;
  /** The rules are in force, but this looks like a mistake. */
  policyDoubted(path: string, doubt: string): void;
}

export interface PolicyFileOptions {
  readonly path: string;
  readonly policy: Policy;
  readonly clock: Clock;
  readonly events: PolicyFileEvents;
  /** How often the file is read where the system does not report changes. 10,000 by default. */
  readonly pollMs?: number;
  /** A changed file is used when it stayed the same for this time, since an editor may still be writing it. 200 by default. */
  readonly settleMs?: number;
}

/**
 * A file of policy overrides, as oslo.policy reads it, followed while the service runs.
 * - followed: reads the file when the system reports a change in its folder (an editor replaces files, so the file itself
 *   is the wrong thing to watch), and every `pollMs` where it does not
 * - settling: the file has changed, and its text counts once two readings, `settleMs` apart, are the same
 * After that the overrides are in force, or are refused with a reason and the previous ones stay. In both cases the mode is followed again.
 */
export class PolicyFile {
  readonly #options: Required<PolicyFileOptions>;
  /** The text that was last put in force or refused, or null when the file was not readable. */
  #judged: string | null = null;
  /** The text that has to be read once more. */
  #settling: string | null | undefined;
  #timer: Timer | null = null;
  #watcher: FSWatcher | null = null;
  #reading: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(options: PolicyFileOptions) {
    this.#options = { pollMs: 10_000, settleMs: 200, ...options };
  }

  /** Puts the file's overrides in force and follows it from then on. Throws a `SettingsError` when the file is broken. */
  async start(): Promise<void> {
    const { path, events } = this.#options;
    try {
      this.#judged = await readFile(path, "utf8");
      this.#putInForce(this.#judged);
    } catch (error) {
      throw new SettingsError(`the policy file ${path} is refused: ${oneLine(error)}`);
    }
    this.#watch();
    this.#lookAfter(this.#options.pollMs);
    events.policyLoaded(path, Object.keys(parsePolicyFile(this.#judged)).length);
  }

  /** Stops following; the rules stay as they are. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    this.#watcher?.close();
    await this.#reading;
  }

  #watch(): void {
    const name = basename(this.#options.path);
    try {
      this.#watcher = watch(dirname(this.#options.path), { persistent: false }, (_kind, changed) => {
        // Kubernetes swaps a link beside the file and never names the file itself.
        if (changed === null || changed === name || changed.startsWith("..")) this.#lookAfter(this.#options.settleMs);
      });
      this.#watcher.on("error", () => this.#watcher?.close());
    } catch {
      // Watching is not possible here (out of watches, or a network file system), so polling must suffice.
    }
  }

  #lookAfter(delayMs: number): void {
    if (this.#closed) return;
    this.#timer?.cancel();
    this.#timer = this.#options.clock.setTimer(delayMs, () => {
      this.#reading = this.#look();
    });
  }

  async #look(): Promise<void> {
    const { path, pollMs, settleMs, events } = this.#options;
    const text = await readFile(path, "utf8").catch(() => null);
    if (text === this.#judged) {
      this.#settling = undefined;
      return this.#lookAfter(pollMs);
    }
    if (this.#settling === undefined || this.#settling !== text) {
      this.#settling = text;
      return this.#lookAfter(settleMs);
    }
    this.#settling = undefined;
    this.#judged = text;
    try {
      if (text === null) throw new Error("it cannot be read");
      events.policyLoaded(path, this.#putInForce(text));
    } catch (error) {
      events.policyRefused(path, oneLine(error));
    }
    this.#lookAfter(pollMs);
  }

  /** The number of overrides. */
  #putInForce(text: string): number {
    const { path, policy, events } = this.#options;
    const overrides = parsePolicyFile(text);
    policy.replaceOverrides(overrides);
    for (const doubt of policy.doubtsAbout(overrides)) events.policyDoubted(path, doubt);
    return Object.keys(overrides).length;
  }
}

/**
 * Parses the overrides of a policy file: YAML (hence also JSON) with rule names and their expressions. An empty file has none. Lists of
 * lists, as in old files, mean `or` of `and`. Throws for anything else. A rule without a value is refused, although oslo.policy reads it as
 * "everybody".
 */
export function parsePolicyFile(text: string): Readonly<Record<string, string>> {
  const document: unknown = parse(text, { prettyErrors: true, maxAliasCount: 100 }) ?? {};
  if (typeof document !== "object" || Array.isArray(document)) throw new Error("it must be a map of rules by name");
  return Object.fromEntries(
    Object.entries(document as object).map(([name, value]) => [name, expressionOf(name, value)]),
  );
}

function expressionOf(name: string, value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value)) return expressionOfLists(name, value);
  throw new Error(
    `policy rule ${JSON.stringify(name)} must be text ("@" allows every caller, "!" none), but it is ${JSON.stringify(value)}`,
  );
}

function expressionOfLists(name: string, alternatives: readonly unknown[]): string {
  if (alternatives.length === 0) return "@";
  const parts = alternatives
    .map((part) => (typeof part === "string" ? [part] : part))
    .map((part) => {
      const fits =
        Array.isArray(part) &&
        part.every((check) => typeof check === "string" && /^[^\s()]+$|^[^\s()]*%\([^\s()]+\)s$/.test(check));
      if (!fits) throw new Error(`policy rule ${JSON.stringify(name)} must be a list of lists of checks`);
      return part as readonly string[];
    })
    .filter((part) => part.length > 0);
  return parts.length === 0 ? "!" : parts.map((part) => part.join(" and ")).join(" or ");
}

/** Returns the first line of the parser's message, which names the place; an excerpt of the file would follow. */
function oneLine(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  const line = text.split("\n")[0]!.trim();
  return error instanceof YAMLParseError ? `it is not YAML: ${line.replace(/:$/, "")}` : line;
}
