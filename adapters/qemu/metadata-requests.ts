/** The longest head of a request. */
const HEAD_BYTES_MAX = 8_192;
const HEAD_END = "\r\n\r\n";

/**
 * One piece of what a guest sends: a request, or the end of what can be understood. `method` is not checked; a request with a body is not understood.
 */
export type MetadataRequest =
  | { readonly kind: "request"; readonly method: string; readonly path: string }
  | { readonly kind: "nonsense" };

/** Cuts the bytes that arrive from a guest into HTTP requests. After `nonsense` it returns nothing more. */
export class MetadataRequests {
  #pending = "";
  #isOver = false;

  /** Whether a request has begun and is not complete. */
  get isAmidst(): boolean {
    return this.#pending !== "";
  }

  /** The requests that are complete with these bytes. */
  push(bytes: Buffer): readonly MetadataRequest[] {
    const requests: MetadataRequest[] = [];
    if (this.#isOver) return requests;
    this.#pending += bytes.toString("latin1");
    while (!this.#isOver) {
      const end = this.#pending.indexOf(HEAD_END);
      if ((end < 0 ? this.#pending.length : end) > HEAD_BYTES_MAX) requests.push(this.#over());
      else if (end < 0) break;
      else {
        const head = this.#pending.slice(0, end);
        this.#pending = this.#pending.slice(end + HEAD_END.length);
        requests.push(requestOf(head) ?? this.#over());
      }
    }
    return requests;
  }

  #over(): MetadataRequest {
    this.#isOver = true;
    this.#pending = "";
    return { kind: "nonsense" };
  }
}

const REQUEST_LINE = /^([A-Z]{1,20}) (?:http:\/\/[^/ ]*)?(\/[^ ?]*)(?:\?[^ ]*)? HTTP\/1\.[01]$/;
const HAS_BODY = /^(?:transfer-encoding|expect) *:|^content-length *:(?![ 0]*$)/i;

function requestOf(head: string): MetadataRequest | null {
  const [line = "", ...headers] = head.split("\r\n");
  const [, method, path] = REQUEST_LINE.exec(line) ?? [];
  if (method === undefined || path === undefined || headers.some((header) => HAS_BODY.test(header))) return null;
  try {
    return { kind: "request", method, path: decodeURIComponent(path) };
  } catch {
    return null; // an escape that is none
  }
}
