import type { GuestName } from "./journal.ts";

/** A piece of work in a trace. */
export interface Span {
  /** `error` null: it went well. Called once. */
  end(error: string | null): void;
}

/** What the agent tells tracing: its builds are part of the conductor's trace. */
export interface AgentTracing {
  /** `traceparent` as W3C Trace Context has it; empty: not part of any trace. */
  startBuild(guest: GuestName, traceparent: string): Span;
}

/** No tracing at all. */
export const noTracing: AgentTracing = { startBuild: () => ({ end: () => {} }) };
