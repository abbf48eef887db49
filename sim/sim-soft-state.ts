import type { SoftState } from "../core/stores/soft-state.ts";
import type { SimProcess } from "./sim-process.ts";

interface Waiting {
  readonly work: (softState: SoftState) => Promise<unknown>;
  /** Called with null when the soft state cannot be reached. */
  readonly answer: (answer: { readonly value: unknown } | null) => void;
}

/**
 * The soft state as a process reaches it over the network. It behaves like the real one: it never rejects, it answers as if it were empty when it
 * cannot be reached, and the calls of one turn travel together. `there` returns the soft state that the calls find when they arrive.
 */
export function simSoftState(process: SimProcess, there: () => SoftState): SoftState {
  let waiting: Waiting[] = [];
  const send = () => {
    const calls = waiting;
    waiting = [];
    const answer = (values: readonly unknown[] | null) => {
      for (const [at, call] of calls.entries()) call.answer(values === null ? null : { value: values[at] });
    };
    process.call("redis", () => Promise.all(calls.map(({ work }) => work(there())))).then(answer, () => answer(null));
  };
  const ask = <Value>(work: (softState: SoftState) => Promise<Value>, otherwise: Value) =>
    new Promise<Value>((resolve) => {
      if (waiting.length === 0) queueMicrotask(send);
      waiting.push({ work, answer: (answer) => resolve(answer === null ? otherwise : (answer.value as Value)) });
    });
  return {
    announce: (id, ttlMs) => ask((state) => state.announce(id, ttlMs), [id]),
    living: () => ask((state) => state.living(), []),
    withdraw: (id) => ask((state) => state.withdraw(id), undefined),
    recordFigures: (id, figures, ttlMs) => ask((state) => state.recordFigures(id, figures, ttlMs), undefined),
    figuresOf: (ids) => ask((state) => state.figuresOf(ids), new Map()),
    recordBuildFailure: (cell, host) => ask((state) => state.recordBuildFailure(cell, host), undefined),
    clearBuildFailures: (cell, host) => ask((state) => state.clearBuildFailures(cell, host), undefined),
    buildFailures: () => ask((state) => state.buildFailures(), new Map()),
    recordPicks: (id, picks) => ask((state) => state.recordPicks(id, picks), undefined),
    recentPicks: (id) => ask((state) => state.recentPicks(id), []),
    recordLaws: (reading, ttlMs) => ask((state) => state.recordLaws(reading, ttlMs), undefined),
    laws: () => ask((state) => state.laws(), null),
    close: async () => {},
  };
}
