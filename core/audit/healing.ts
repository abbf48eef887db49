/** The outcome of healing one violation. */
export type HealOutcome =
  /** `before` and `after` are the figures or rows that were changed or, in a dry run, would be changed. */
  | { readonly kind: "healed"; readonly before: string; readonly after: string }
  /** The thing was in order when it was checked again under a lock. */
  | { readonly kind: "in-order" }
  /** Nothing was changed, because only a person or another service can decide what is right. */
  | { readonly kind: "left"; readonly why: string };

export interface Healing {
  readonly what: string;
  readonly where: string;
  readonly outcome: HealOutcome;
}
