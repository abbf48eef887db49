import { expect, test } from "vitest";
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

test("lets no password out, in whatever field or text it stands", () => {
  const lines = logged((logger) => {
    logger.info({ url: "postgres://berth:s3cret@db:5432/api" }, "connecting");
    logger.error({ err: new Error("cannot reach nats://api:s3cret@nats:4222") }, "lost postgres://a:s3cret@b/c");
    logger.info({ password: "s3cret", request: { authorization: "s3cret" } }, "login");
  });
  expect(lines).not.toContain("s3cret");
  expect(lines).toContain("postgres://berth:[redacted]@db:5432/api");
});

test("leaves URLs without passwords alone", () => {
  const line = "see http://127.0.0.1:8774/v2.1 and mail a@b.c, or redis://cache:6379/0 for x@y";
  expect(hidePasswords(line)).toBe(line);
});

test("is silent below its level", () => {
  expect(logged((logger) => logger.debug("detail"))).toBe("");
});
