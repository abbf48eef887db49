import { useEffect, useState } from "preact/hooks";
import type { ExplainAnswer } from "../../services/api/operators/explain/explain-schemas.ts";
import { callApi } from "./call-api.ts";
import { Funnel, HostLink, Misses, Weights } from "./funnel.tsx";
import { picture } from "./live-state.ts";

/** The question is sent this long after the last key press. */
const PAUSE_MS = 150;
/** An answer is asked for again at most this often when servers were placed meanwhile. */
const ASK_AGAIN_MS = 2_000;

interface Question {
  readonly flavor: string;
  readonly image: string;
  readonly zone: string;
  readonly host: string;
  readonly hints: string;
  readonly count: number;
}

/** Asks where a server would go, and answers as its user types. Nothing is placed. */
export function WhatIf() {
  const [flavors, setFlavors] = useState<readonly { id: string; name: string }[]>([]);
  const [question, setQuestion] = useState<Question>({
    flavor: "",
    image: "",
    zone: "",
    host: "",
    hints: "",
    count: 1,
  });
  const [answer, setAnswer] = useState<ExplainAnswer | null>(null);
  const [error, setError] = useState("");
  // When this number changes, the answer may have changed, too. A busy cloud places all the time, so it is read every other second.
  const [placed, setPlaced] = useState(0);
  useEffect(() => {
    const read = () => setPlaced(picture.peek()?.figures.counts.placed ?? 0);
    const timer = setInterval(read, ASK_AGAIN_MS);
    return () => clearInterval(timer);
  }, []);
  const readFlavors = () => {
    callApi<{ flavors: { id: string; name: string }[] }>("GET", "/v2.1/flavors").then(
      ({ flavors: found }) => {
        setFlavors(found);
        setQuestion((before) => (before.flavor === "" ? { ...before, flavor: found[0]?.id ?? "" } : before));
      },
      (failure: Error) => setError(failure.message),
    );
  };
  // A cloud may have had no flavor until its first server was created, so the flavors are read again then.
  useEffect(readFlavors, [placed > 0]);
  // The answer may change when something is placed meanwhile.
  useEffect(() => {
    if (question.flavor === "") return;
    const abort = new AbortController();
    const timer = setTimeout(() => ask(question, abort.signal).then(show, fail), PAUSE_MS);
    const show = (given: ExplainAnswer) => {
      setAnswer(given);
      setError("");
    };
    const fail = (failure: Error) => !abort.signal.aborted && setError(failure.message);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [question, placed]);
  const set = (change: Partial<Question>) => setQuestion({ ...question, ...change });
  return (
    <section class="card" aria-labelledby="what-if-title">
      <header class="card-head">
        <h2 id="what-if-title">What if</h2>
        <p class="muted small">Where would a server go? Nothing is placed.</p>
      </header>
      <form class="fields" onSubmit={(event) => event.preventDefault()}>
        <label>
          Flavor
          <select
            value={question.flavor}
            onFocus={readFlavors}
            onChange={(event) => set({ flavor: event.currentTarget.value })}
          >
            {flavors.length === 0 && <option value="">there is none yet</option>}
            {flavors.map(({ id, name }) => (
              <option key={id} value={id}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          Servers
          <input
            type="number"
            min={1}
            max={100}
            value={question.count}
            onInput={(event) => set({ count: Math.max(1, Math.min(100, Number(event.currentTarget.value) || 1)) })}
          />
        </label>
        <Field label="Zone" value={question.zone} onValue={(zone) => set({ zone })} />
        <Field label="Image" value={question.image} onValue={(image) => set({ image })} />
        <Field
          label="Hints"
          placeholder="same_host=…, group=…"
          value={question.hints}
          onValue={(hints) => set({ hints })}
        />
        <Field label="What of this host?" placeholder="host" value={question.host} onValue={(host) => set({ host })} />
      </form>
      {error !== "" && (
        <p class="bad" role="status">
          {error}
        </p>
      )}
      {answer !== null && error === "" && <Answer answer={answer} question={question} />}
    </section>
  );
}

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onValue: (text: string) => void;
  readonly placeholder?: string;
}

function Field({ label, value, onValue, placeholder = "" }: FieldProps) {
  return (
    <label>
      {label}
      <input
        type="text"
        value={value}
        placeholder={placeholder}
        onInput={(event) => onValue(event.currentTarget.value)}
      />
    </label>
  );
}

function Answer({ answer, question }: { readonly answer: ExplainAnswer; readonly question: Question }) {
  const { refusal, servers, host } = answer;
  return (
    <div aria-live="polite" class="answer">
      {refusal !== null ? (
        <p class="bad">{refusal}</p>
      ) : (
        <p class={servers.length < question.count ? "bad" : "good"}>
          {servers.length === 0
            ? "No valid host."
            : servers.length < question.count
              ? `Only ${servers.length} of ${question.count} servers fit.`
              : `${servers.length === 1 ? "It goes" : "They go"} to `}
          {servers.slice(0, 8).map(({ host: one, alternates }, index) => (
            <span key={`${index} ${one}`}>
              {index > 0 && ", "}
              <HostLink host={one} />
              {servers.length === 1 && alternates.length > 0 && ` (alternates ${alternates.join(", ")})`}
            </span>
          ))}
          {servers.length > 8 && " …"}
        </p>
      )}
      {host !== null && (
        <p>
          {host.host}:{" "}
          {host.steps.every(({ why }) => why === null)
            ? "passes every step"
            : host.steps.flatMap(({ step, why }) => (why === null ? [] : [`${step}: ${why}`])).join("; ")}
        </p>
      )}
      {question.host !== "" && host === null && refusal === null && <p class="muted">No host has this name.</p>}
      {refusal === null && (
        <div class="two">
          <Funnel hosts={answer.hosts} steps={answer.steps} />
          <div>
            <Weights ranked={answer.ranked} />
            <Misses misses={answer.nearest} />
          </div>
        </div>
      )}
      {answer.cells_not_searched.length > 0 && (
        <p class="note">Not searched: {answer.cells_not_searched.join(", ")}.</p>
      )}
    </div>
  );
}

function ask({ flavor, image, zone, host, hints, count }: Question, signal: AbortSignal): Promise<ExplainAnswer> {
  const pairs = hints
    .split(",")
    .map((pair) => pair.split("=").map((part) => part.trim()))
    .filter(([key, value]) => key !== "" && value !== undefined && value !== "");
  const body = {
    ...{ flavor, count },
    ...(image.trim() !== "" && { image: image.trim() }),
    ...(zone.trim() !== "" && { zone: zone.trim() }),
    ...(host.trim() !== "" && { host: host.trim() }),
    ...(pairs.length > 0 && { hints: Object.fromEntries(pairs) }),
  };
  return callApi<ExplainAnswer>("POST", "/berth/v1/explain", body, signal);
}
