import { signal } from "@preact/signals";

/** The content of the panel beside the page. */
export type Opened =
  | { readonly kind: "host"; readonly host: string }
  | { readonly kind: "server"; readonly server: string };

export const opened = signal<Opened | null>(fromHash());

/** Opens the panel. The address of the page then names it, so that it can be given to others. */
export function open(what: Opened): void {
  location.hash = what.kind === "host" ? `host/${encodeURIComponent(what.host)}` : `server/${what.server}`;
}

export function closePanel(): void {
  history.replaceState(null, "", location.pathname);
  opened.value = null;
}

addEventListener("hashchange", () => {
  opened.value = fromHash();
});

function fromHash(): Opened | null {
  const [, kind, name = ""] = /^#(host|server)\/(.{1,300})$/.exec(location.hash) ?? [];
  if (kind === undefined) return null;
  return kind === "host" ? { kind, host: decodeURIComponent(name) } : { kind: "server", server: name };
}
