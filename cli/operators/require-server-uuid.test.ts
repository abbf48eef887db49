import { expect, test } from "vitest";
import { requireServerUuid } from "./require-server-uuid.ts";

test("the name of a server is refused with where its UUID is shown, and a UUID is returned as it is", () => {
  expect(() => requireServerUuid("first")).toThrow(/^"first" is not the UUID of a server; `openstack server list/);
  expect(() => requireServerUuid("5dba757a")).toThrow(
    /^"5dba757a" is not the UUID of a server; it may be a part of one: `berth top` shows whole ones .*; `openstack server list/,
  );
  for (const uuid of ["01a22292-4ed1-7a66-a9e3-644565f59a3b", "01a222924ed17a66a9e3644565f59a3b"])
    expect(requireServerUuid(uuid)).toBe(uuid);
});
