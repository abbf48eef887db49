import type { OpenedNote, PortNoteStore } from "../../../../core/stores/api/port-note-store.ts";

/**
 * Runs a change of a server's ports while the server's note is open. `work` returns whether the server's record and Neutron agree again; the note
 * stays open if they do not, if `work` rejects, or if an earlier change left it open. Then the settler compares them.
 */
export async function withOpenNote(
  notes: PortNoteStore,
  { serverUuid, keptPorts }: { readonly serverUuid: string; readonly keptPorts: readonly string[] },
  work: (opened: OpenedNote | undefined) => Promise<boolean>,
): Promise<void> {
  const [opened] = await notes.openNotes([{ serverUuid, keptPorts }]);
  const agrees = await work(opened);
  // The change has been made. If this fails, the settler makes the same comparison.
  if (agrees && opened?.wasOpen === false) await notes.settleNotes([opened]).catch(() => undefined);
}
