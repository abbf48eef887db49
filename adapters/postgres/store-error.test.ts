import { describe, expect, test } from "vitest";
import { AssertionError } from "../../core/assert.ts";
import { runStored, StoreError, verdictOf } from "./store-error.ts";

const withCode = (code: string): Error => Object.assign(new Error("refused"), { code });

describe("an error of a store", () => {
  test.each([
    [withCode("40P01"), "again"],
    [withCode("08006"), "unavailable"],
    [withCode("57P01"), "unavailable"],
    [withCode("ECONNREFUSED"), "unavailable"],
    [new Error("Connection terminated unexpectedly"), "unavailable"],
    [new Error("timeout exceeded when trying to connect"), "unavailable"],
    [withCode("23505"), "bug"],
    [new Error("something else"), "bug"],
    ["no error at all", "bug"],
  ])("is judged by its code: %s → %s", (error, verdict) => {
    expect(verdictOf(error)).toBe(verdict);
  });

  test("a deadlock's victim is run anew, five times at most", async () => {
    let runs = 0;
    const work = async (): Promise<number> => {
      runs += 1;
      if (runs % 6 < 5) throw withCode("40P01");
      return runs;
    };
    expect(await runStored("hop", work)).toBe(5);
    runs = -5;
    const error = await runStored("hop", work).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(StoreError);
    expect(error).toMatchObject({ code: "unavailable", operation: "hop" });
    expect(runs).toBe(0);
  });

  test("a programmer's error passes through as it is", async () => {
    const assertion = new AssertionError("never");
    await expect(runStored("hop", () => Promise.reject(assertion))).rejects.toBe(assertion);
  });
});
