import type { HostCheck, HostFilter } from "./host-filter.ts";

const MESSAGE_CHARS_MAX = 100;

/**
 * Wraps a filter that may be faulty and may not have been compiled. When it throws or gives an invalid answer, the wrapper refuses the host
 * and states the fault, so that the request ends with a reason that points to the mistake.
 */
export function guardFilter(filter: HostFilter): HostFilter {
  return {
    ...filter,
    // A faulty filter may throw for one cell only, and then it applies there.
    isForAllCells: false,
    bind(spec, cell) {
      try {
        const check: unknown = filter.bind(spec, cell);
        if (check === null) return null;
        if (typeof check !== "function") throw new TypeError("bind returned neither null nor a function");
        return guardCheck(filter.name, check as HostCheck);
      } catch (error) {
        const refusal = describe(filter.name, error);
        return () => refusal;
      }
    },
  };
}

function guardCheck(name: string, check: HostCheck): HostCheck {
  return (host) => {
    try {
      const verdict: unknown = check(host);
      if (verdict === null || typeof verdict === "string") return verdict;
      throw new TypeError("its verdict is neither null nor a text");
    } catch (error) {
      return describe(name, error);
    }
  };
}

function describe(name: string, error: unknown): string {
  return `${name} failed: ${error instanceof Error ? error.message : error}`.slice(0, MESSAGE_CHARS_MAX);
}
