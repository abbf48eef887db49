import { describe, expect, test } from "vitest";
import { routeFor } from "./routes.ts";

describe("routeFor", () => {
  test("matches no path with U+0000 in a parameter, so that no database gets it", () => {
    expect(routeFor("GET", "/traits/CUSTOM_A%00", 39)).toEqual({ kind: "no-path" });
    expect(routeFor("GET", "/resource_classes/%00", 39)).toEqual({ kind: "no-path" });
    expect(routeFor("GET", "/traits/CUSTOM_A%2500", 39)).toMatchObject({ kind: "found" });
  });
});
