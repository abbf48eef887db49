import { expect, test } from "vitest";
import { networkNoteOf } from "./network-note.ts";

test.each([
  [null, "isolated", /reach nothing but their metadata\. .* --bridge NAME,\nor with --user-network open/],
  [null, "open", /reach all that this machine reaches, and its own services/],
  ["br0", "isolated", /attached to the bridge br0/],
] as const)(
  "says what virtual machines reach with the bridge %s and an %s user network",
  (bridge, userNetwork, words) => {
    expect(networkNoteOf({ bridge, userNetwork })).toMatch(words);
  },
);
