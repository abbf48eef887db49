/** How a call to another OpenStack service failed. The codes are stable. */
export type NeighbourErrorCode =
  /** No answer, an answer that broke off, or one that says "later" (500 and up, 429): the call may have had its effect. */
  | "unreachable"
  /** The service does not let the caller do this (401, 403). */
  | "refused"
  /** The thing does not exist, or the caller may not see it (404, 410). */
  | "not-found"
  /** The thing is in a state that does not allow this (409). */
  | "conflict"
  /** A quota or a limit of size is used up (413, or another status with the service's own word for it). */
  | "over-quota"
  /** The service does not take the request as it is (400 and other statuses of 4xx). */
  | "invalid"
  /** An answer that the service's API does not have, or no endpoint in the catalogue. */
  | "bad-answer";

/** A call to another OpenStack service failed. Never holds a token. */
export class NeighbourError extends Error {
  override readonly name = "NeighbourError";
  readonly code: NeighbourErrorCode;
  /** The service, for example `Glance`. */
  readonly service: string;
  /** The status of its answer; null if there was none. */
  readonly status: number | null;
  /** The service's own word for the error, for example Neutron's `OverQuota`; null if it has none. */
  readonly type: string | null;
  /** The service's own explanation, at most some hundred characters; null if it has none. */
  readonly explanation: string | null;

  constructor(
    code: NeighbourErrorCode,
    message: string,
    facts: {
      readonly service: string;
      readonly status?: number;
      readonly type?: string | null;
      readonly explanation?: string | null;
    },
  ) {
    super(message);
    this.code = code;
    this.service = facts.service;
    this.status = facts.status ?? null;
    this.type = facts.type ?? null;
    this.explanation = facts.explanation ?? null;
  }

  /** The service's own explanation, or the message where it has none. */
  get why(): string {
    return this.explanation ?? this.message;
  }
}

const EXPLANATION_MAX = 300;
const QUOTA_WORDS = /over ?quota|quota(s)? exceeded|exceeds? .*quota|OverLimit/i;

/** Makes the error of an answer with a status that the caller did not expect. */
export function errorOfAnswer(service: string, status: number, body: string): NeighbourError {
  const { type, explanation } = explain(body);
  const code = codeOf(status, `${type ?? ""} ${explanation ?? ""}`);
  const because = explanation === null ? "" : `: ${explanation}`;
  return new NeighbourError(code, `${service} answers ${status}${because}`, { service, status, type, explanation });
}

function codeOf(status: number, words: string): NeighbourErrorCode {
  if (status >= 500 || status === 429) return "unreachable";
  if (status === 413 || (status >= 400 && QUOTA_WORDS.test(words))) return "over-quota";
  if (status === 401 || status === 403) return "refused";
  if (status === 404 || status === 410) return "not-found";
  if (status === 409) return "conflict";
  return status >= 400 ? "invalid" : "bad-answer";
}

/**
 * Finds the explanation in an error's body. Cinder and Keystone answer `{"badRequest": {"message"}}`, Neutron `{"NeutronError": {"type", "message"}}`,
 * and Glance a page of HTML or text.
 */
function explain(body: string): { readonly type: string | null; readonly explanation: string | null } {
  try {
    const [inner] = Object.values(JSON.parse(body) as Record<string, unknown>);
    const { message, type } = (typeof inner === "object" ? inner : { message: inner }) as Record<string, unknown>;
    return {
      type: typeof type === "string" ? type.slice(0, EXPLANATION_MAX) : null,
      explanation: typeof message === "string" && message !== "" ? oneLine(message) : null,
    };
  } catch {
    const text = oneLine(withoutHead(body).replace(/<[^<>]*>/g, " "));
    return { type: null, explanation: text === "" ? null : text };
  }
}

function withoutHead(page: string): string {
  const from = page.search(/<head>/i);
  const [, ...afterEnds] = from < 0 ? [] : page.slice(from).split(/<\/head>/i);
  const body = afterEnds.at(-1);
  return body === undefined ? page : `${page.slice(0, from)} ${body}`;
}

const oneLine = (text: string): string => text.replace(/\s+/g, " ").trim().slice(0, EXPLANATION_MAX);
