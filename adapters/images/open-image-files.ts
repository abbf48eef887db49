import { resolve } from "node:path";
import { SettingsError } from "../../runtime/settings-error.ts";
import { ImageDirectory } from "./image-directory.ts";

/** Opens the directory with the bits of images. Null without a path. Rejects with a SettingsError if it cannot be read or written. */
export async function openImageFiles(path: string | null): Promise<ImageDirectory | null> {
  if (path === null) return null;
  const files = new ImageDirectory(resolve(path));
  await files.check().catch((error: Error) => {
    throw new SettingsError(
      `BERTH_IMAGES_PATH (--images-path) is ${path}, which cannot be used: ${error.message}. Create the directory, and let this user write to it.`,
    );
  });
  return files;
}
