import { resolve } from "node:path";
import { ImageDirectory } from "../../../adapters/images/image-directory.ts";
import { WantedImages } from "../../../adapters/images/wanted-images.ts";
import { GlanceClient } from "../../../adapters/openstack/glance-client.ts";
import type { Neighbours } from "../../../adapters/openstack/open-neighbours.ts";
import { systemClock } from "../../../runtime/clock.ts";
import { refuseFaults } from "../../../runtime/settings-error.ts";
import type { AuthKind } from "../identity/auth-kind.ts";
import type { GlanceApi } from "./glance-images.ts";
import type { ImageRule } from "./image-rule.ts";

/** Glance, and the directory into which the bits of its images are fetched for the hosts. */
export interface GlanceParts {
  readonly client: GlanceApi;
  readonly files: Pick<ImageDirectory, keyof ImageDirectory>;
  readonly wanted: Pick<WantedImages, keyof WantedImages>;
  /** Breaks off the transfers under way. */
  close(): Promise<void>;
}

interface GlanceOptions {
  readonly images: ImageRule;
  readonly auth: AuthKind;
  readonly imagesPath: string | null;
  readonly glanceUrl: string | null;
}

/** Throws a `SettingsError` when Glance cannot be used with these settings. */
export function refuseBadGlance({ images, auth, imagesPath }: GlanceOptions): void {
  if (images !== "glance") return;
  const faults: string[] = [];
  if (auth !== "keystone")
    faults.push(
      `BERTH_AUTH (--auth) is ${auth}, and BERTH_IMAGES (--images) is glance, which is called in the name of users of Keystone: set BERTH_AUTH=keystone`,
    );
  if (imagesPath === null)
    faults.push(
      "BERTH_IMAGES_PATH (--images-path) is missing, and BERTH_IMAGES (--images) is glance: name the directory into which the data of images are fetched, and which the hosts have as their --images-path",
    );
  refuseFaults(faults);
}

/** The name of the key with which apis seal the marks of wanted images. */
export const IMAGE_MARKS_KEY = "image-marks";

/** Opens the client of Glance and the directory of images, with the key of its marks. Sends no request yet. */
export function openGlanceParts(
  neighbours: Neighbours,
  { glanceUrl: url, imagesPath }: GlanceOptions,
  marksKey: Uint8Array,
): GlanceParts {
  const dir = resolve(imagesPath ?? "");
  const neighbour = neighbours.client({ service: "Glance", types: ["image"], url });
  return {
    client: new GlanceClient(neighbour),
    close: () => neighbour.close(),
    files: new ImageDirectory(dir),
    wanted: new WantedImages(dir, systemClock, marksKey),
  };
}
