import { describe, expect, test } from "vitest";
import { isAllowedOrigin, tokenOf } from "./read-upgrade.ts";

const TOKEN = "11111111-1111-4111-8111-111111111111";

describe("the token of a client", () => {
  test.each([
    [`/?token=${TOKEN}`, undefined, TOKEN],
    ["/", `other=x; token=${TOKEN}`, TOKEN],
    [`/?token=${TOKEN}`, "token=22222222-2222-4222-8222-222222222222", TOKEN],
    ["/", undefined, null],
    ["/?token=short", undefined, null],
    ["//", `mytoken=${TOKEN}`, null],
    ["http://[/", undefined, null],
  ])("of %s with the cookie %s is %s", (url, cookie, token) => {
    expect(tokenOf({ url, headers: cookie === undefined ? {} : { cookie } })).toBe(token);
  });
});

describe("the origin of a client", () => {
  test.each([
    [undefined, [], true],
    ["http://proxy:6083", [], true],
    ["https://proxy:6083", [], true],
    ["http://evil.example", [], false],
    ["http://horizon.example:8080", ["horizon.example"], true],
    ["http://horizon.example:8080", ["horizon.example:8080"], true],
    ["http://horizon.example:8080", ["horizon.example:9090"], false],
    ["null", [], false],
  ] as const)("%s with the allowed hosts %j: %s", (origin, allowed, isAllowed) => {
    expect(isAllowedOrigin({ host: "proxy:6083", ...(origin !== undefined && { origin }) }, allowed)).toBe(isAllowed);
  });
});
