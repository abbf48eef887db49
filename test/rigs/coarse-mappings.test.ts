import { SourceMap } from "node:module";
import { expect, test } from "vitest";
import { coarseMappings } from "./coarse-mappings.ts";

const mapOf = (mappings: string) =>
  new SourceMap({
    ...{ file: "", sourceRoot: "", sources: ["a.ts", "b.ts"], names: [], sourcesContent: [] },
    version: 3,
    mappings,
  });

test("coarse mappings keep the source and the line of each place, also after segments that are left out, lines without a source, and numbers of several digits", () => {
  // Three segments at line 0 of a.ts, an empty line, a segment without a source, one at line 1,000 of b.ts, and one 900 lines before it.
  const fine = "AAAA,IAAC,IAAC;;A,ECw+BC;AAp4BD,CAAC";
  const coarse = coarseMappings(fine);
  expect(coarse.length).toBeLessThan(fine.length);
  for (const [line, column] of [
    [0, 0],
    [0, 9],
    [2, 3],
    [3, 0],
    [3, 7],
  ] as const) {
    const [one, other] = [mapOf(fine), mapOf(coarse)].map((map) => map.findEntry(line, column));
    expect(one).toMatchObject({ originalSource: expect.stringMatching(/^[ab]\.ts$/) });
    const placeOf = (entry: typeof one) =>
      entry && "originalSource" in entry && [entry.originalSource, entry.originalLine];
    expect(placeOf(other)).toEqual(placeOf(one));
  }
});
