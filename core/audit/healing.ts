/** What became of one thing that was to be healed. */
export type HealOutcome =
  /** `before` and `after`: the figures or rows that were (in a dry run: would be) changed. */
  | { readonly kind: "healed"; readonly before: string; readonly after: string }
  /** Looked at again under lock, it was in order. */
  | { readonly kind: "in-order" }
  /** Nothing was done: nobody but a person, or some service, can tell what is right. */
  | { readonly kind: "left"; readonly why: string };

export interface Healing {
  readonly what: string;
  readonly where: string;
  readonly outcome: HealOutcome;
}
