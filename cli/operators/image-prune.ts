import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { boolean, directory } from "../../runtime/setting-kinds.ts";
import { SettingsError, setting } from "../../runtime/settings.ts";
import { runCommand } from "../run-command.ts";
import { callOperatorsApi, operatorSettings } from "./operators-client.ts";

const declaration = {
  command: "berth image prune",
  about:
    "Removes the files of deleted images from a directory of images. Files of images that were never registered stay; with images in Glance these are all files that no api has fetched. The host's virtual machines, and others of the same images that are moved to it, go on with the copy that the host made for its first guest. A host that never had a guest of a deleted image cannot take one after its file is removed.",
  settings: {
    ...operatorSettings,
    imagesPath: setting(directory, { about: "the directory, as `berth compute-agent` has it" }),
    dryRun: setting(boolean, { about: "only list the files", default: "false" }),
  },
};

/** Number of ids in one request to the api. */
const IDS_MAX = 100;
/** The end of the name of a file that was uploaded, or that an api has fetched from Glance. */
const FETCHED = /-[0-9a-f]{32}$/;
const IMAGE_FILE =
  /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:-[0-9a-f]{32}|\.(?:qcow2|raw|img|tar|tar\.gz|tar\.xz))?$/;

/** `berth image prune`: asks the api which of the directory's images were deleted, and removes their files. */
export function runImagePruneCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings) => {
    const files = await imageFiles(settings.imagesPath);
    const ids = [...files.keys()];
    let removed = 0;
    for (let first = 0; first < ids.length; first += IDS_MAX) {
      const body = { ids: ids.slice(first, first + IDS_MAX) };
      const { deleted, fetchedOnly } = await callOperatorsApi<{ deleted: readonly string[]; fetchedOnly?: boolean }>(
        settings,
        "POST",
        "/deleted-images",
        body,
      );
      for (const name of deleted.flatMap((id) => files.get(id) ?? [])) {
        if (fetchedOnly === true && !FETCHED.test(name)) continue;
        if (!settings.dryRun) await rm(join(settings.imagesPath, name), { force: true });
        process.stdout.write(`${name}\n`);
        removed += 1;
      }
    }
    const kept = [...files.values()].flat().length - removed;
    process.stdout.write(`${removed} files of deleted images ${settings.dryRun ? "found" : "removed"}, ${kept} kept\n`);
    return 0;
  });
}

/** Returns the directory's file names by image id. Throws a SettingsError when the directory cannot be read. */
async function imageFiles(dir: string): Promise<ReadonlyMap<string, readonly string[]>> {
  const names = await readdir(dir).catch((error: Error) => {
    throw new SettingsError(`--images-path ${dir} cannot be read: ${error.message}`);
  });
  const files = new Map<string, string[]>();
  for (const name of names) {
    const id = IMAGE_FILE.exec(name)?.[1];
    if (id !== undefined) files.set(id, [...(files.get(id) ?? []), name]);
  }
  return files;
}
