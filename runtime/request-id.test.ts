import { expect, test } from "vitest";
import { acceptRequestId, newRequestId } from "./request-id.ts";

test("makes ids that it accepts, each a new one", () => {
  const id = newRequestId();
  expect(acceptRequestId(id)).toBe(id);
  expect(newRequestId()).not.toBe(id);
});

test("refuses ids that could not have come from OpenStack", () => {
  for (const header of [undefined, "", "req-1", `${newRequestId()}\n`, [newRequestId()]])
    expect(acceptRequestId(header)).toBeNull();
});
