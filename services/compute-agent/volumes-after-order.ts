import { runsNow } from "../../core/agent/runs-now.ts";
import { volumesAfter, volumesWithFiles, withoutConnection } from "../../core/tasks/server-volumes.ts";
import type { ServerVolume, VolumeFile } from "../../proto/gen/berth/shared.ts";
import type { GuestOrder } from "./guest-order.ts";

/** The guest's volumes after the order, if it changes them or their files. */
export function volumesAfterOrder(
  order: GuestOrder,
  { volumes = [] }: { readonly volumes?: readonly ServerVolume[] },
): { readonly volumes?: readonly ServerVolume[] } {
  const { work } = order;
  if (work.kind === "attach" || work.kind === "detach")
    return { volumes: volumesAfter(volumes, work.kind === "attach", withoutConnection(work.volume)) };
  const files = filesAfter(order);
  return files.length === 0 ? {} : { volumes: volumesWithFiles(volumes, files) };
}

/** The files to which the guest writes after the order, as far as the order names or changes them. One without a name is the file that Cinder named. */
function filesAfter({ work, files, goal }: GuestOrder): readonly VolumeFile[] {
  if (work.kind === "volume-snapshot" && work.step !== "merge")
    return [{ volumeId: work.volume.volumeId, file: work.step === "switch" ? work.snapshot.newFile : "" }];
  // The other one of two volumes has other files.
  if (work.kind === "replace" && work.step === "pivot") return [{ volumeId: work.volume.volumeId, file: "" }];
  return runsNow(goal ?? "") ? files : [];
}
