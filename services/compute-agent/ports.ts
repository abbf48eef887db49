/** A piece of work in a trace. */
export interface Span {
  /** `error` null: it went well. Called once. */
  end(error: string | null): void;
}
