import { expect, test } from "vitest";
import { KnownPaths } from "./known-paths.ts";

test("knows the methods of a path, with parameters, queries and slashes at its end, and no others", () => {
  const paths = new KnownPaths();
  paths.add("/servers", ["GET", "HEAD"]);
  paths.add("/servers", ["POST"], { facts: { since: 2 } });
  paths.add("/servers/:id/action", ["POST"]);
  paths.add("/placement/*", ["GET"]);
  expect(paths.methodsAt("/servers")).toEqual(["GET", "HEAD", "POST"]);
  expect(paths.methodsAt("/servers/?limit=1")).toEqual(["GET", "HEAD", "POST"]);
  expect(paths.methodsAt("/servers/a.b-c/action")).toEqual(["POST"]);
  expect(paths.methodsAt("/servers//action")).toBeNull();
  expect(paths.methodsAt("/serversX")).toBeNull();
  expect(paths.methodsAt(`/servers${"/".repeat(200_000)}y`)).toBeNull();
  expect(paths.methodsAt("/placement/traits")).toBeNull();
  expect(paths.routes()).toContainEqual({ method: "POST", url: "/servers", facts: { since: 2 }, schema: {} });
});
