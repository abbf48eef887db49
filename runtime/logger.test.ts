import { expect, test } from "vitest";
import fc from "../test/rigs/property.ts";
import { createLogger, hidePasswords } from "./logger.ts";

function logged(write: (logger: ReturnType<typeof createLogger>) => void): string {
  let lines = "";
  write(createLogger({ name: "api", level: "info", stream: { write: (line) => (lines += line) } }));
  return lines;
}

test("writes one JSON object a line, with the process and the level by name", () => {
  const line = logged((logger) => logger.info({ server: "s1" }, "accepted"));
  expect(JSON.parse(line)).toMatchObject({ level: "info", name: "api", server: "s1", msg: "accepted" });
});

test("shows no password, whatever field or text contains it", () => {
  const lines = logged((logger) => {
    logger.info({ url: "postgres://berth:s3cret@db:5432/api" }, "connecting");
    logger.error({ err: new Error("cannot reach nats://api:s3cret@nats:4222") }, "lost postgres://a:s3cret@b/c");
    logger.info({ password: "s3cret", request: { authorization: "s3cret" } }, "login");
    logger.info({ "x-auth-token": "s3cret", headers: { "x-subject-token": "s3cret", cookie: "s3cret" } }, "call");
  });
  expect(lines).not.toContain("s3cret");
  expect(lines).toContain("postgres://berth:[redacted]@db:5432/api");
});

test("shows no password, whatever characters it contains, and keeps the rest of the line", () => {
  const scheme = fc.constantFrom("postgres", "nats", "redis", "https");
  const sign = fc.constantFrom(..."/@\"\\:?#%,;&='`{}[]()<>|^~$!*+-.é");
  const password = fc.string({ unit: fc.oneof(sign, fc.string({ minLength: 1, maxLength: 1 })), maxLength: 12 });
  fc.assert(
    fc.property(scheme, password, fc.boolean(), (name, given, inText) => {
      const secret = `Zq${given.replaceAll(/\s/g, "_")}qZ`;
      const url = `${name}://berth:${secret}@db.example:5432/api`;
      const line = logged((logger) =>
        inText
          ? logger.error({ mail: "a@b.c", err: new Error(`cannot reach ${url} for x@y.z`) }, `lost ${url} of x@y.z`)
          : logger.error({ url, urls: [url, { at: `"${url}"` }], mail: "a@b.c" }, "gone, ask x@y.z"),
      );
      expect(line).not.toMatch(/Zq|qZ/);
      expect(line).toContain(`${name}://berth:[redacted]@db.example:5432/api`);
      expect(JSON.parse(line)).toMatchObject({ mail: "a@b.c", msg: expect.stringMatching(/x@y\.z$/) });
    }),
    { numRuns: 500 },
  );
});

test("hides the password of each URL of a list, and keeps the hosts", () => {
  const list = 'nats://api:a/b@one:4222,nats://api:c"d@two:4222,tls://api:e@f@three:4222?replicas=3';
  const redacted = "api:[redacted]@";
  expect(hidePasswords(list)).toBe(
    `nats://${redacted}one:4222,nats://${redacted}two:4222,tls://${redacted}three:4222?replicas=3`,
  );
  expect(hidePasswords("postgres://u:p@one:5432,two:5432/db")).toBe("postgres://u:[redacted]@one:5432,two:5432/db");
  expect(hidePasswords("redis://:p@cache:6379/0")).toBe("redis://:[redacted]@cache:6379/0");
});

test("leaves URLs without passwords alone", () => {
  const line = "see http://127.0.0.1:8774/v2.1 and mail a@b.c, or redis://cache:6379/0 for x@y";
  expect(hidePasswords(line)).toBe(line);
});

test("hides the password of a URL that follows a word without a space", () => {
  expect(hidePasswords("URL_postgres://u:p@one/db")).toBe("URL_postgres://u:[redacted]@one/db");
});

// Each of these would take minutes if the cost grew with the square of the length.
test.each(["a.".repeat(500_000), `@${"a://b:".repeat(100_000)}`, "@a://b".repeat(100_000)])(
  "scans a long text from outside only once: %#",
  (text) => {
    expect(hidePasswords(`${text}://`)).toHaveLength(text.length + 3);
  },
);

test("logs nothing below its level", () => {
  expect(logged((logger) => logger.debug("detail"))).toBe("");
});
