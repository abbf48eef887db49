import { expect, test } from "vitest";
import { readNatsUrl } from "./nats-url.ts";

test("reads the servers, the user and the number of copies", () => {
  expect(readNatsUrl("nats://api:a%40b@one:4222,nats://api:a%40b@two:4223?replicas=3")).toEqual({
    servers: ["one:4222", "two:4223"],
    tls: undefined,
    user: "api",
    password: "a@b",
    replicas: 3,
  });
  expect(readNatsUrl("tls://one")).toMatchObject({ tls: {}, user: undefined, replicas: undefined });
  const files = "ca=/etc/ca.pem&cert=/etc/cert.pem&key=/etc/key.pem";
  expect(readNatsUrl(`tls://one,tls://two?${files}`).tls).toEqual({
    caFile: "/etc/ca.pem",
    certFile: "/etc/cert.pem",
    keyFile: "/etc/key.pem",
  });
});

test.each(["0", "6", "three", "1.5", ""])("refuses %s copies", (text) => {
  expect(() => readNatsUrl(`nats://one?replicas=${text}`)).toThrow(/allowed are 1 to 5/);
});
