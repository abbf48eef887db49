import { expect, test } from "vitest";
import { guardFilter } from "./guard-filter.ts";
import type { HostCheck } from "./host-filter.ts";

/** Filters may also come from JavaScript, where no compiler checks their types. */
function boundTo(bind: () => unknown): HostCheck | null {
  const filter = guardFilter({ name: "Mine", decidedBy: "kind", bind: bind as () => HostCheck | null });
  return filter.bind({} as never, {} as never);
}

test("a valid answer of a filter is passed on", () => {
  expect(boundTo(() => null)).toBeNull();
  expect(boundTo(() => () => null)?.({} as never)).toBeNull();
  expect(boundTo(() => () => "is odd")?.({} as never)).toBe("is odd");
});

test.each([
  ["a verdict of undefined", () => () => undefined, "Mine failed: its verdict is neither null nor a text"],
  ["a verdict of true", () => () => true, "Mine failed: its verdict is neither null nor a text"],
  ["a promise of a verdict", () => async () => null, "Mine failed: its verdict is neither null nor a text"],
  ["no check", () => undefined, "Mine failed: bind returned neither null nor a function"],
])("%s refuses the host with a reason that describes the mistake", (_, bind, reason) => {
  expect(boundTo(bind)?.({} as never)).toBe(reason);
});
