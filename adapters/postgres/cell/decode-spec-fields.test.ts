import { randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import { SPEC_FIELDS, type SpecField } from "../../../core/stores/cell/listed-servers.ts";
import { ServerSpec } from "../../../proto/gen/berth/shared.ts";
import { serverSpec } from "../../../test/contract/cell-fixtures.ts";
import fc from "../../../test/rigs/property.ts";
import { specFieldsDecoder } from "./decode-spec-fields.ts";

/** A spec in which all fields by which lists are sorted differ from those of an empty spec. */
const FULL = serverSpec(1, {
  ...{ imageRef: "image-1", availabilityZone: "edge", imageProperties: { kernel_id: "k", ramdisk_id: "r" } },
  ...{ hostname: "web", description: "d".repeat(300), accessIpV4: "10.0.0.1", accessIpV6: "fd00::1", keyName: "kéy" },
  ...{ configDrive: true, manualDisk: true, launchIndex: 70_000, requestId: "req-1" },
  ...{ metadata: { a: "b" }, tags: ["blue", "red"], userData: "x".repeat(20_000), createdAtMs: 1_700_000_000_000 },
});
const encoded = (spec: ServerSpec): Uint8Array => ServerSpec.encode(spec).finish();
const only = (spec: ServerSpec, fields: readonly SpecField[]): ServerSpec =>
  ServerSpec.fromPartial(Object.fromEntries(fields.map((field) => [field, spec[field]])));

test.each(SPEC_FIELDS)("the field %s of a spec is decoded, and no other one", (field) => {
  const spec = specFieldsDecoder([field])(encoded(FULL));
  expect(spec).toEqual(only(FULL, [field]));
  expect(spec[field]).not.toEqual(ServerSpec.fromPartial({})[field]);
});

test("any fields are decoded, of specs that have only some of them", () => {
  const fields = fc.subarray([...SPEC_FIELDS]);
  fc.assert(
    fc.property(fields, fields, (present, asked) => {
      const spec = only(FULL, present);
      expect(specFieldsDecoder(asked)(encoded(spec))).toEqual(only(spec, asked));
    }),
  );
});

test("the last value of a field counts, and the order of fields does not matter", () => {
  const parts = [{ keyName: "former" }, { name: "n" }, { keyName: "web" }, { tags: ["x"] }, { hostname: "h" }];
  const bytes = Buffer.concat(parts.map((part) => encoded(ServerSpec.fromPartial(part))));
  expect(specFieldsDecoder(["name", "keyName", "hostname"])(bytes)).toEqual(
    ServerSpec.fromPartial({ name: "n", keyName: "web", hostname: "h" }),
  );
});

test("fields of any encoding, which later versions may add, are passed over", () => {
  const later = [
    [0x85, 0x7d, 1, 2, 3, 4],
    [0x81, 0x7d, 1, 2, 3, 4, 5, 6, 7, 8],
    [0x80, 0x7d, 0xff, 0xff, 0x7f],
  ];
  const bytes = Buffer.concat([...later.map((field) => Buffer.from(field)), encoded(FULL)]);
  expect(specFieldsDecoder(["name"])(bytes)).toEqual(only(FULL, ["name"]));
});

test("bytes that are no spec are decoded or refused, and nothing beyond their end is read", () => {
  const decode = specFieldsDecoder(["keyName", "name"]);
  const whole = encoded(FULL);
  const broken = [...whole.subarray(0, 400).keys()].map((end) => whole.subarray(0, end));
  for (const bytes of [...broken, ...Array.from({ length: 300 }, () => randomBytes(40))]) {
    try {
      const { name } = decode(bytes);
      expect(name.length).toBeLessThanOrEqual(bytes.length);
    } catch (error) {
      expect(error).toBeInstanceOf(Error);
    }
  }
  expect(() => decode(Buffer.from([0x0b]))).toThrow("wire type 3");
});
