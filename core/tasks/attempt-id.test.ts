import { expect, test } from "vitest";
import { parseAttemptId } from "./attempt-id.ts";
import { attemptIdOf } from "./server.ts";

test("reads back what attemptIdOf wrote", () => {
  expect(parseAttemptId(attemptIdOf("3f0c", 12))).toEqual({ taskId: "3f0c", selection: 12 });
});

test.each(["", "/1", "task", "task/", "task/x", "task/-1", "task/12345678"])("refuses %j", (text) => {
  expect(parseAttemptId(text)).toBeNull();
});
