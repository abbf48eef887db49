import { useEffect, useRef, useState } from "preact/hooks";
import type { LiveHostTree, LiveProvider } from "../../services/api/dashboard/read-tree.ts";
import { callApi } from "./call-api.ts";
import { classText, countText, numberText, percentText } from "./format.ts";
import { connection, picture } from "./live-state.ts";
import { closePanel, open, opened } from "./open-panel.ts";
import { Story } from "./story.tsx";

/** The panel with one host or one server. It is a dialog, so the keyboard stays in it until it is closed. */
export function SidePanel() {
  const dialog = useRef<HTMLDialogElement>(null);
  const what = opened.value;
  useEffect(() => {
    if (what === null) dialog.current?.close();
    else if (dialog.current?.open === false) dialog.current.showModal();
  }, [what]);
  return (
    <dialog
      ref={dialog}
      class="panel"
      aria-labelledby="panel-title"
      onClose={closePanel}
      onClick={(event) => event.target === event.currentTarget && closePanel()}
      onKeyDown={(event) => event.key === "Escape" && closePanel()}
    >
      {what !== null && (
        <div class="panel-in">
          <header class="card-head">
            <h2 id="panel-title">{what.kind === "host" ? `Host ${what.host}` : "The whole story"}</h2>
            <button type="button" class="quiet" onClick={closePanel}>
              Close
            </button>
          </header>
          {what.kind === "host" ? (
            <HostTree host={what.host} key={what.host} />
          ) : (
            <Story server={what.server} key={what.server} />
          )}
        </div>
      )}
    </dialog>
  );
}

/** The row of the host in the picture, as text: it changes when the host does. */
function rowTextOf(host: string): string {
  for (const row of picture.value?.hosts.values() ?? []) if (row[1] === host) return row.join();
  return "";
}

function HostTree({ host }: { readonly host: string }) {
  const [tree, setTree] = useState<LiveHostTree | null>(null);
  const [error, setError] = useState("");
  const row = rowTextOf(host);
  const isLive = connection.value === "live";
  // The tree is requested again whenever the host's row has changed.
  useEffect(() => {
    const abort = new AbortController();
    callApi<LiveHostTree>("GET", `/berth/v1/live/hosts/${encodeURIComponent(host)}`, undefined, abort.signal).then(
      (answer) => {
        setTree(answer);
        setError("");
      },
      (failure: Error) => !abort.signal.aborted && setError(failure.message),
    );
    return () => abort.abort();
  }, [host, row, isLive]);
  if (error !== "") return <p class="bad">{error}</p>;
  if (tree === null) return <p class="muted">Asking…</p>;
  return (
    <>
      <p class="muted">
        in {tree.cell}
        {tree.zone !== null && `, zone ${tree.zone}`}
        {tree.aggregates.length > 0 && `, aggregates ${tree.aggregates.join(", ")}`}
      </p>
      <h3>Resource providers</h3>
      <ul class="tree">
        {tree.providers.map((provider) => (
          <Provider key={provider.uuid} provider={provider} depth={depthOf(tree.providers, provider)} />
        ))}
      </ul>
      <h3>{countText(tree.serverCount, "server")}</h3>
      <ul class="plain">
        {tree.servers.map(({ id, project, flavor, busy }) => (
          <li key={id}>
            <button type="button" class="link mono" onClick={() => open({ kind: "server", server: id })}>
              {id.slice(0, 8)}
            </button>{" "}
            <span class="muted">
              {flavor} · {project}
              {busy && " · in motion"}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

function depthOf(providers: readonly LiveProvider[], { parent }: LiveProvider): number {
  const above = providers.find(({ uuid }) => uuid === parent);
  return above === undefined ? 0 : 1 + depthOf(providers, above);
}

function Provider({ provider, depth }: { readonly provider: LiveProvider; readonly depth: number }) {
  return (
    <li class="provider" style={{ marginInlineStart: `${depth * 20}px` }}>
      <b>{provider.name}</b> <span class="mono muted small">{provider.uuid.slice(0, 8)}</span>
      {provider.inventories.length > 0 && (
        <table class="amounts">
          <thead>
            <tr>
              <th scope="col">Class</th>
              <th scope="col">Used</th>
              <th scope="col">Capacity</th>
              <th scope="col">Share</th>
            </tr>
          </thead>
          <tbody>
            {provider.inventories.map((one) => (
              <tr key={one.class}>
                <th scope="row">{classText(one.class)}</th>
                <td>{numberText(one.used)}</td>
                <td title={`(${one.total} − ${one.reserved} reserved) × ${one.ratio}`}>{numberText(one.capacity)}</td>
                <td class="share">
                  <span class="bar" aria-hidden="true">
                    <i
                      style={{ width: `${one.capacity <= 0 ? 0 : Math.min(100, (100 * one.used) / one.capacity)}%` }}
                    />
                  </span>
                  {percentText(one.used, one.capacity)}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {provider.traits.length > 0 && (
        <details>
          <summary>{countText(provider.traits.length, "trait")}</summary>
          <p class="small muted">{provider.traits.join(", ")}</p>
        </details>
      )}
    </li>
  );
}
