import { describe, expect, test } from "vitest";
import { HEADER_BYTES, judgeHeader } from "./disk-header.ts";

/** The beginning of a qcow2 image of version 3. */
function qcow2({ version = 3, backing = 0n, bytes = 1_048_576n, features = 0n, snapshots = 0 } = {}): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUInt32BE(0x51_46_49_fb, 0);
  header.writeUInt32BE(version, 4);
  header.writeBigUInt64BE(backing, 8);
  header.writeBigUInt64BE(bytes, 24);
  header.writeUInt32BE(snapshots, 60);
  header.writeBigUInt64BE(features, 72);
  return header;
}
const beginning = (hex: string) => Buffer.concat([Buffer.from(hex, "hex"), Buffer.alloc(HEADER_BYTES)]);

describe("the beginning of an image", () => {
  test("tells the size of a qcow2 disk, and nothing for a raw one", () => {
    expect(judgeHeader(qcow2(), "qcow2")).toEqual({ virtualBytes: 1_048_576 });
    // Version 2 ends before the features.
    expect(judgeHeader(qcow2({ version: 2, features: 1n << 20n }).subarray(0, 72), "qcow2")).toEqual({
      virtualBytes: 1_048_576,
    });
    expect(judgeHeader(qcow2({ features: 0b1_1011n, snapshots: 1_000 }), "qcow2")).toEqual({ virtualBytes: 1_048_576 });
    expect(judgeHeader(Buffer.alloc(3), "raw")).toEqual({ virtualBytes: null });
    expect(judgeHeader(beginning("1f8b0800"), "aki")).toEqual({ virtualBytes: null });
  });

  test.each([
    ["qcow2 that was declared as raw", qcow2(), "raw", /disk_format is raw, but the content is qcow2/],
    ["qcow2 that was declared as a kernel", qcow2(), "aki", /disk_format is aki, but the content is qcow2/],
    ["raw that was declared as qcow2", Buffer.alloc(512), "qcow2", /disk_format is qcow2, but the content is raw/],
    ["VMDK that was declared as raw", beginning("4b444d56"), "raw", /content is vmdk/],
    ["LUKS that was declared as raw", beginning("4c554b53"), "raw", /content is luks/],
    ["a backing file", qcow2({ backing: 104n }), "qcow2", /backing file/],
    ["an external data file", qcow2({ features: 4n }), "qcow2", /another file/],
    ["a disk without bounds", qcow2({ bytes: 1n << 63n }), "qcow2", /bytes/],
    ["half of a header", qcow2().subarray(0, 20), "qcow2", /ends within the header/],
    ["no more than the magic number", qcow2().subarray(0, 6), "qcow2", /ends within the header/],
    ["a header of version 3 without features", qcow2().subarray(0, 80), "qcow2", /ends within the header/],
    ["a later version", qcow2({ version: 9 }), "qcow2", /version 9 of qcow2; allowed: 2, 3/],
    ["the first version", qcow2({ version: 1 }), "qcow2", /version 1 of qcow2; allowed: 2, 3/],
    ["features that nobody knows", qcow2({ features: 1n << 20n }), "qcow2", /does not know \(0x100000\)/],
    ["too many snapshots", qcow2({ snapshots: 1_001 }), "qcow2", /1001 internal snapshots; allowed: up to 1000/],
  ])("is refused for %s", (_what, header, declared, why) => {
    expect(judgeHeader(header, declared)).toEqual({ refused: expect.stringMatching(why) });
  });
});
