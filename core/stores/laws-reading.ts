/** The state of the six laws, as a continuous audit has found it. */
export interface LawsReading {
  /** The time of the last complete reading, in milliseconds since the epoch. */
  readonly at: number;
  /** The violations that hold now, and those of moments of the last ten minutes, the newest 20. Law 0 stands for the policies of server groups, and `volumes` for the agreement with Cinder. */
  readonly broken: readonly { readonly law: number | "volumes"; readonly subject: string; readonly evidence: string }[];
  /** Laws that the reading says nothing about: 4 and 6 where not every host has reported its guests. */
  readonly unchecked: readonly number[];
}
