import type { SnapshotStep } from "../../core/agent/power-verbs.ts";
import { runsNow } from "../../core/agent/runs-now.ts";
import type { ServerVolume, VolumeFile, VolumeSnapshot } from "../../proto/gen/berth/shared.ts";
import type { FakePower } from "./fake-power.ts";

/** The files of a guest's volumes in Cinder, by the volume's id: the one to which the guest writes, and each with the one that it refers to after it. */
export type FakeFiles = Readonly<Record<string, readonly string[]>>;

/** The storage on which Cinder's files lie, as hosts see it. */
export interface FakeShare {
  /** The file, and those that it refers to. */
  chainOf(file: string): readonly string[];
  /** A guest of the server has begun to write to the first of these files, and has the others open. */
  opened(files: readonly string[], serverUuid: string): void;
  /** Everything that a file has is in another one now. */
  merged(file: string, into: string): void;
  /** One file has what the other one has, since a guest's volume was copied. */
  copied?(from: string, to: string): void;
}

/** A storage on which no file refers to another one. */
export const NO_SHARE: FakeShare = { chainOf: (file) => [file], opened: () => {}, merged: () => {} };

/** The files of volumes as the hosts of their guests find them. */
export function filesOfVolumes(volumes: readonly ServerVolume[] = [], share: FakeShare): FakeFiles {
  const named = volumes.map((one) => [one.volumeId, nameIn(one.connection)] as const);
  return Object.fromEntries(named.flatMap(([id, name]) => (name === null ? [] : [[id, share.chainOf(name)]])));
}

/** The files of a guest after one step of a snapshot. Throws what the driver rejects with. */
export function filesAfter(
  files: FakeFiles,
  { volumeId, connection }: Pick<ServerVolume, "volumeId" | "connection">,
  { snapshot, step }: { readonly snapshot: VolumeSnapshot; readonly step: SnapshotStep },
  share: FakeShare,
): FakeFiles {
  const chain = files[volumeId];
  if (chain === undefined) {
    // A guest without the volume writes to none of its files.
    if (step === "return") return files;
    throw new Error(`the guest does not have volume ${volumeId} in Cinder`);
  }
  const { newFile, fileToMerge, mergeTarget } = snapshot;
  const [used = "", ...below] = chain;
  const now = (after: readonly string[]): FakeFiles => ({ ...files, [volumeId]: after });
  if (step === "return") {
    if (used !== newFile) return files;
    share.merged(newFile, below[0] ?? "");
    return now(below);
  }
  if (step === "switch" && used === newFile) return files;
  const named = nameIn(connection);
  if (used !== named) throw new Error(`the guest writes to ${used}, and Cinder names ${named} for volume ${volumeId}`);
  if (step === "switch") return now([newFile, ...chain]);
  if (mergeTarget === "") {
    const from = fileToMerge === "" ? chain.length : chain.indexOf(fileToMerge);
    if (from < 1) throw new Error(`volume ${volumeId} does not refer to ${fileToMerge}`);
    for (const file of chain.slice(1, from)) share.merged(file, used);
    return now([used, ...chain.slice(from)]);
  }
  if (!chain.includes(mergeTarget)) throw new Error(`volume ${volumeId} does not refer to ${mergeTarget}`);
  if (fileToMerge === used) throw new Error(`the guest writes to ${used}, which therefore stays`);
  if (!chain.includes(fileToMerge)) return files;
  if (chain[chain.indexOf(fileToMerge) + 1] !== mergeTarget)
    throw new Error(`${fileToMerge} does not refer to ${mergeTarget}`);
  share.merged(fileToMerge, mergeTarget);
  return now(chain.filter((file) => file !== fileToMerge));
}

/** The files of a guest after one step of a snapshot, and those of its next start. One that stands still has the latter. Throws what the driver rejects with. */
export function snapshotted(
  {
    files = {},
    nextFiles,
    power,
  }: { readonly files?: FakeFiles; readonly nextFiles?: FakeFiles; readonly power: FakePower },
  ...[volume, order, share]: [Parameters<typeof filesAfter>[1], Parameters<typeof filesAfter>[2], FakeShare]
): { readonly files: FakeFiles; readonly nextFiles?: FakeFiles } {
  const isStanding = !runsNow(power) && power !== "paused";
  const after = filesAfter((isStanding && nextFiles) || files, volume, order, share);
  return { files: after, ...(nextFiles && { nextFiles: after }) };
}

/** The files of a guest that does not run, when these are wanted. Throws what the driver rejects with. */
export function filesWanted(files: FakeFiles, wanted: readonly VolumeFile[], share: FakeShare): FakeFiles {
  const changed = wanted.flatMap(({ volumeId, file }) => {
    const [used] = files[volumeId] ?? [];
    if (used === undefined || used === file) return [];
    const chain = share.chainOf(file);
    if (!chain.includes(used))
      throw new Error(`the guest has written to ${used}, which ${file} of volume ${volumeId} does not refer to`);
    return [[volumeId, chain] as const];
  });
  return { ...files, ...Object.fromEntries(changed) };
}

/** The files of a guest that no longer has the volume. */
export const filesWithout = (files: FakeFiles, volumeId: string): FakeFiles =>
  Object.fromEntries(Object.entries(files).filter(([id]) => id !== volumeId));

/** The name of the file to which a connection leads, if Cinder names one. */
export function nameIn(connection: string): string | null {
  if (connection === "") return null;
  const { name } = JSON.parse(connection) as { readonly name?: unknown };
  return typeof name === "string" ? name : null;
}
