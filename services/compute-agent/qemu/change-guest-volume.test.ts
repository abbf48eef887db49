import { expect, test } from "vitest";
import type { QemuGuest } from "../../../adapters/qemu/qemu-guest.ts";
import { VolumeFiles } from "../../../adapters/qemu/volume-files.ts";
import type { ServerVolume } from "../../../proto/gen/berth/shared.ts";
import { guestRecord } from "../../../test/rigs/guest-record.ts";
import { changeGuestVolume } from "./change-guest-volume.ts";

const [OWN, DECIDED, ANOTHER] = ["v1", "v2", "v3"];

/** A guest that is about to use `DECIDED`, and did not come to do so, because its agent died. */
function guestDecided() {
  const replacement = { by: DECIDED, connection: "{}", former: "{}", node: "copy", isDecided: true };
  const asked: string[] = [];
  const guest = {
    record: guestRecord({ volumes: [{ volumeId: OWN, target: 1, lun: 1, connection: "{}", replacement }] }),
    state: async () => "running",
    execute: async (command: string) => {
      asked.push(command);
      throw new Error("nothing is asked of QEMU here");
    },
    change: async () => {
      throw new Error("the record stays as it is");
    },
  } as unknown as QemuGuest;
  const files = new VolumeFiles({ own: null, mounts: "/mounts" });
  const change = (step: "mirror" | "keep", replacedBy: string) =>
    changeGuestVolume(guest, { volumeId: OWN, replacedBy } as ServerVolume, step, {
      ...{ files, signal: new AbortController().signal },
    });
  return { change, asked };
}

test("a volume whose replacement is decided is not told to be copied to another one, and a repetition is", async () => {
  const { change, asked } = guestDecided();
  const reason = `the guest uses volume ${DECIDED} in the place of volume ${OWN} already`;
  await expect(change("mirror", ANOTHER)).rejects.toThrow(reason);
  await change("mirror", DECIDED);
  // The reason names the volume that the guest has, and not the one that the order names.
  await expect(change("keep", ANOTHER)).rejects.toThrow(reason);
  expect(asked).toEqual([]);
});
