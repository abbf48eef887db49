/** A host that a scheduler has just chosen. */
export interface HostPick {
  readonly cell: string;
  readonly host: string;
}
