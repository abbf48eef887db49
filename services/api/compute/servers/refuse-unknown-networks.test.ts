import { describe, expect, test } from "vitest";
import { refuseUnknownNetworks } from "./refuse-unknown-networks.ts";

const refusal = (networks: object[] | "none" | "auto" | undefined, minor: number): string | null => {
  try {
    refuseUnknownNetworks({ name: "web", flavorRef: "1", ...(networks !== undefined && { networks }) }, minor);
    return null;
  } catch (error) {
    return (error as Error).message;
  }
};

describe("networks of a new server", () => {
  test.each([
    [1, null],
    [36, null],
    [37, "Invalid input for field/attribute server. Value: an object. 'networks' is a required property"],
  ])("that are left out in 2.%i", (minor, message) => {
    expect(refusal(undefined, minor)).toBe(message);
  });

  test.each(["none", "auto"] as const)("that are said by the word %s need 2.37", (word) => {
    const message = `Invalid input for field/attribute networks. Value: ${word}. '${word}' is not of type 'array'`;
    expect([1, 36, 37, 104].map((minor) => refusal(word, minor))).toEqual([message, message, null, null]);
  });

  test("have tags in 2.32 to 2.36, and again from 2.42 on", () => {
    const networks = [{ uuid: "a" }, { uuid: "b", tag: "public" }];
    const known = Array.from({ length: 104 }, (_, at) => at + 1).filter((minor) => refusal(networks, minor) === null);
    expect([known[0], known[4], known[5], known.at(-1), known.length]).toEqual([32, 36, 42, 104, 68]);
    expect(refusal(networks, 31)).toBe("Additional properties are not allowed ('tag' was unexpected)");
    expect(refusal([{ uuid: "a" }], 1)).toBe(null);
  });
});
