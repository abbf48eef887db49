import { expect, test } from "vitest";
import { MetadataRequests } from "./metadata-requests.ts";

const read = (...pieces: string[]) => {
  const requests = new MetadataRequests();
  return pieces.flatMap((piece) => requests.push(Buffer.from(piece, "latin1")));
};
const get = (path: string) => ({ kind: "request", method: "GET", path });

test("requests are cut out of the stream, wherever it is divided", () => {
  const sent = "GET /openstack HTTP/1.1\r\nHost: 169.254.169.254\r\n\r\nHEAD /latest/?a=b HTTP/1.0\r\n\r\n";
  const expected = [get("/openstack"), { kind: "request", method: "HEAD", path: "/latest/" }];
  expect(read(sent)).toEqual(expected);
  expect(read(...sent)).toEqual(expected);
});

test("a proxy's form of a request, and escapes in its path, are understood", () => {
  expect(read("GET http://169.254.169.254/user%5Fdata HTTP/1.1\r\n\r\n")).toEqual([get("/user_data")]);
});

test.each([
  ["no HTTP", "hello\r\n\r\n"],
  ["another protocol", "GET / HTTP/2.0\r\n\r\n"],
  ["a body", "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello"],
  ["a body in chunks", "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"],
  ["an escape that is none", "GET /%zz HTTP/1.1\r\n\r\n"],
  ["a head without an end", "G".repeat(10_000)],
])("nothing is read after %s", (_what, sent) => {
  expect(read("GET /a HTTP/1.1\r\nContent-Length: 0\r\n\r\n", sent, "GET /b HTTP/1.1\r\n\r\n")).toEqual([
    get("/a"),
    { kind: "nonsense" },
  ]);
});

test("a request that has begun is known", () => {
  const requests = new MetadataRequests();
  requests.push(Buffer.from("GET / HTTP/1.1\r\n"));
  expect(requests.isAmidst).toBe(true);
  requests.push(Buffer.from("\r\n"));
  expect(requests.isAmidst).toBe(false);
});
