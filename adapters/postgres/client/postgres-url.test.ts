import { expect, test } from "vitest";
import { postgresUrl, singleHostUrls } from "./postgres-url.ts";

test.each([
  ["postgres://u:p@one:5432/db", ["postgres://u:p@one:5432/db"]],
  ["postgresql:///db?host=/tmp", ["postgresql:///db?host=/tmp"]],
  ["postgres://u:p@one:1,two:2/db", ["postgres://u:p@one:1/db", "postgres://u:p@two:2/db"]],
  ["postgres://one,[::1]:2?a=b", ["postgres://one?a=b", "postgres://[::1]:2?a=b"]],
  [
    "postgres://u:a%40b@one,two/db?target_session_attrs=read-write",
    [
      "postgres://u:a%40b@one/db?target_session_attrs=read-write",
      "postgres://u:a%40b@two/db?target_session_attrs=read-write",
    ],
  ],
])("reads %s", (url, urls) => {
  expect(singleHostUrls(url)).toEqual(urls);
  expect(postgresUrl.parse(url)).toBe(url);
});

test.each([
  "mysql://u@one/db",
  "one,two/db",
  "postgres://one:x,two/db",
  "postgres://one,/db",
  "postgres://one,two/db?target_session_attrs=standby",
])("rejects %s because it names no database that can be written to", (url) => {
  expect(singleHostUrls(url)).toBeNull();
  expect(postgresUrl.parse(url)).toBeUndefined();
});
