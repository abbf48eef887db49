import { expect, test } from "vitest";
import { serverVolumeOf } from "./server-volume-of.ts";

const attachment = { attachmentId: "a", device: "/dev/sdb", tag: null, deleteOnTermination: false };

test("a volume of Cinder has a content, so that agents that do not know of Cinder make no empty file for it", () => {
  const of = (inCinder: boolean) => serverVolumeOf({ id: "v", sizeGib: 1, inCinder, attachment });
  expect([of(true).imageRef, of(false).imageRef]).toEqual(["cinder", ""]);
});
