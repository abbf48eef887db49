import { HOST_AMOUNTS_AT, type LiveChange, type LiveHostRow, type LivePath, type LivePicture } from "./live-picture.ts";

/** This file and live-picture.ts are also part of the page, so they import nothing of Node. */

/** The picture that a watcher holds. */
export interface HeldPicture extends Omit<LivePicture, "hosts" | "paths"> {
  /** Keyed by cell and name, as `hostKeyOf` makes it. */
  readonly hosts: Map<string, LiveHostRow>;
  readonly paths: Map<string, LivePath>;
  /** Rises whenever a host has come or gone. */
  readonly hostsRevision: number;
}

export type LiveEvent =
  | { readonly kind: "picture"; readonly id: string; readonly picture: LivePicture }
  | { readonly kind: "change"; readonly id: string; readonly change: LiveChange };

export const hostKeyOf = (cell: number, name: string): string => `${cell}/${name}`;

export function holdPicture({ hosts, paths, ...rest }: LivePicture): HeldPicture {
  return {
    ...rest,
    hostsRevision: 0,
    hosts: new Map(hosts.map((row) => [hostKeyOf(row[0], row[1]), row])),
    paths: new Map(paths.map((path) => [path.id, path])),
  };
}

/** Returns the picture after the change. Its maps are the same objects, changed. */
export function applyLiveChange(held: HeldPicture, change: LiveChange): HeldPicture {
  const { hosts, paths } = held;
  const countBefore = hosts.size;
  const gone = change.goneHosts ?? [];
  for (const [cell, name] of gone) hosts.delete(hostKeyOf(cell, name));
  for (const row of change.hosts ?? []) hosts.set(hostKeyOf(row[0], row[1]), row);
  for (const id of change.gonePaths ?? []) paths.delete(id);
  for (const path of change.paths ?? []) paths.set(path.id, path);
  const hostsRevision = held.hostsRevision + (gone.length > 0 || hosts.size !== countBefore ? 1 : 0);
  return { ...held, hostsRevision, cells: change.cells ?? held.cells, figures: change.figures ?? held.figures };
}

/** Used and capacity of the class at this place of `classes`. */
export function liveAmountOf(
  row: LiveHostRow,
  classIndex: number,
): { readonly used: number; readonly capacity: number } {
  const at = HOST_AMOUNTS_AT + 2 * classIndex;
  return { used: Number(row[at] ?? 0), capacity: Number(row[at + 1] ?? 0) };
}

/** Reads server-sent events from the pieces of a response. Comments are left out. Ends when the response does. */
export async function* readLiveEvents(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<LiveEvent> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const piece of pieces) {
    text += decoder.decode(piece, { stream: true });
    for (;;) {
      const end = text.indexOf("\n\n");
      if (end < 0) break;
      const event = eventIn(text.slice(0, end));
      text = text.slice(end + 2);
      if (event !== null) yield event;
    }
  }
}

function eventIn(block: string): LiveEvent | null {
  const fields = new Map<string, string>();
  for (const line of block.split("\n")) {
    const colon = line.indexOf(": ");
    if (colon > 0) fields.set(line.slice(0, colon), line.slice(colon + 2));
  }
  const [kind, id, data] = [fields.get("event"), fields.get("id") ?? "", fields.get("data")];
  if (data === undefined) return null;
  if (kind === "picture") return { kind, id, picture: JSON.parse(data) };
  return kind === "change" ? { kind, id, change: JSON.parse(data) } : null;
}
