import { describe, expect, test } from "vitest";
import { AssertionError } from "../../../core/assert.ts";
import { StoreError } from "../../../core/stores/store-error.ts";
import { refusedWrite, runStored, storeErrorCodeOf } from "./run-stored.ts";

const withCode = (code: string): Error => Object.assign(new Error("refused"), { code });

describe("an error of a store", () => {
  test.each([
    [withCode("40P01"), "unavailable"],
    [withCode("08006"), "unavailable"],
    [withCode("57P01"), "unavailable"],
    [withCode("ECONNREFUSED"), "unavailable"],
    [new Error("Connection terminated unexpectedly"), "unavailable"],
    [new Error("timeout exceeded when trying to connect"), "unavailable"],
    [withCode("23505"), "bug"],
    [withCode("25P02"), "bug"],
    [new Error("something else"), "bug"],
    ["no error at all", "bug"],
  ])("is judged by its code: %s is %s", (error, code) => {
    expect(storeErrorCodeOf(error)).toBe(code);
  });

  test("names the operation and keeps the cause", async () => {
    const cause = withCode("08006");
    const thrown = await runStored("cell_hop", () => Promise.reject(cause)).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(StoreError);
    expect(thrown).toMatchObject({ code: "unavailable", operation: "cell_hop", message: "cell_hop: refused", cause });
    await expect(runStored("outer", () => Promise.reject(thrown))).rejects.toBe(thrown);
  });

  test("passes through unchanged when it is a programmer's error", async () => {
    const assertion = new AssertionError("never");
    await expect(runStored("cell_hop", () => Promise.reject(assertion))).rejects.toBe(assertion);
  });

  test("proves that nothing was written only if the disk was full, since other refusals pass within moments", () => {
    const wrapped = new StoreError("unavailable", "dispatch", withCode("53100"));
    expect([withCode("53100"), wrapped].map(refusedWrite)).toEqual(["refused", "refused"]);
    const others = ["53200", "53300", "25006", "57P01", "ECONNREFUSED"].map(withCode);
    expect([...others, "no error at all"].map(refusedWrite)).toEqual([null, null, null, null, null, null]);
  });
});
