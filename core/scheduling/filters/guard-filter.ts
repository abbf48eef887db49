import type { HostCheck, HostFilter } from "./host-filter.ts";

const MESSAGE_CHARS_MAX = 100;

/**
 * A filter that may be wrong: one that throws refuses the host instead, and says so, so that the request ends with a reason that leads to the
 * mistake.
 */
export function guardFilter(filter: HostFilter): HostFilter {
  return {
    ...filter,
    bind(spec, cell) {
      try {
        const check = filter.bind(spec, cell);
        return check && guardCheck(filter.name, check);
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
      return check(host);
    } catch (error) {
      return describe(name, error);
    }
  };
}

function describe(name: string, error: unknown): string {
  return `${name} failed: ${error instanceof Error ? error.message : error}`.slice(0, MESSAGE_CHARS_MAX);
}
