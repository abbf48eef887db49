/** An inventory in the format of the compute agent's hosts file. A missing field has that file's default. */
export interface TreeInventory {
  readonly total: number;
  readonly reserved?: number;
  readonly max_unit?: number;
  readonly initial_allocation_ratio?: number;
}

/** A resource provider and those below it, in the format of the hosts file. The provider of a child is named `<parent>_<name>`. */
export interface TreeProvider {
  readonly name: string;
  readonly inventories: Readonly<Record<string, TreeInventory>>;
  readonly traits: readonly string[];
  readonly children?: readonly TreeProvider[];
}
