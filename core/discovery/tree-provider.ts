/** An inventory as the hosts file of the compute agent has it; what is left out has the defaults of that file. */
export interface TreeInventory {
  readonly total: number;
  readonly reserved?: number;
  readonly max_unit?: number;
}

/** A resource provider and those below it, in the form of the hosts file. The provider of a child is called `<parent>_<name>`. */
export interface TreeProvider {
  readonly name: string;
  readonly inventories: Readonly<Record<string, TreeInventory>>;
  readonly traits: readonly string[];
  readonly children?: readonly TreeProvider[];
}
