import { useEffect, useState } from "preact/hooks";
import type { ShownLife } from "../../cli/operators/life-answer.ts";
import { eventsOf } from "../../cli/operators/life-events.ts";
import { callApi } from "./call-api.ts";
import { timeText } from "./format.ts";
import { Funnel, Misses, Weights } from "./funnel.tsx";
import { connection, picture } from "./live-state.ts";
import { open } from "./open-panel.ts";

/** Everything that is known of one server, as `berth explain SERVER` tells it. */
export function Story({ server }: { readonly server: string }) {
  const [life, setLife] = useState<ShownLife | null>(null);
  const [error, setError] = useState("");
  const path = picture.value?.paths.get(server);
  const isLive = connection.value === "live";
  // The story is requested again whenever the server's path changes.
  useEffect(() => {
    const abort = new AbortController();
    callApi<ShownLife>("GET", `/berth/v1/explain/${server}`, undefined, abort.signal).then(
      (answer) => {
        setLife(answer);
        setError("");
      },
      (failure: Error) => !abort.signal.aborted && setError(failure.message),
    );
    return () => abort.abort();
  }, [server, path, isLive]);
  if (error !== "") return <p class="bad">{error}</p>;
  if (life === null) return <p class="muted">Asking…</p>;
  const { state, request, cell } = life;
  const host = state?.host ?? null;
  return (
    <>
      <p>
        <b>{life.name}</b> <span class="mono muted">{life.server}</span>
      </p>
      <p>
        {state?.status ?? request?.state ?? "unknown"}
        {state?.task_state && ` (${state.task_state})`}
        {host !== null && (
          <>
            {" on "}
            <button type="button" class="link" onClick={() => open({ kind: "host", host })}>
              {host}
            </button>
          </>
        )}
        {cell !== null && ` in ${cell}`}
      </p>
      {state?.fault && <p class="bad">{state.fault.message}</p>}
      {state === null && request?.fault && <p class="bad">{request.fault}</p>}
      {[...life.waits, ...life.missing].map((sentence) => (
        <p key={sentence} class="note">
          {sentence}
        </p>
      ))}
      <h3>What happened</h3>
      <ol class="events">
        {eventsOf(life).map(({ at, what, text }, index) => (
          <li key={`${at} ${index}`} class={/ fails | failed|no valid host|ERROR/.test(` ${text}`) ? "failed" : ""}>
            <time class="mono muted" dateTime={at}>
              {timeText(at)}
            </time>
            <span>
              <b>{what}</b> {text}
            </span>
          </li>
        ))}
      </ol>
      {life.decisions.map(({ at, decision }) => (
        <section key={at}>
          <h3>Why, {timeText(at)}</h3>
          {decision.outcome === "refused" ? (
            <>
              <Funnel hosts={decision.hosts} steps={decision.steps} />
              <Misses misses={decision.nearest} />
            </>
          ) : (
            <>
              <p>
                {decision.host} of {decision.feasible} hosts that fit
                {decision.alternates.length > 0 && `; alternates ${decision.alternates.join(", ")}`};{" "}
                {decision.lostRaces} races lost
              </p>
              <Weights ranked={decision.weights} />
            </>
          )}
        </section>
      ))}
    </>
  );
}
