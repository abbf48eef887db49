/** One span of a trace. */
export interface Span {
  /** Ends the span. `error` is null after a success. Called once. */
  end(error: string | null): void;
}
