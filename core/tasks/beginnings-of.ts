/**
 * The shorter names to which this name of a host or provider adds `_` and more, shortest first. Names of providers below a host's root begin with the host's
 * name and `_`, so a host with such a name could be one of its devices.
 */
export function beginningsOf(name: string): readonly string[] {
  const parts = name.split("_");
  const beginnings = parts.slice(1).map((_, at) => parts.slice(0, at + 1).join("_"));
  return beginnings.filter((beginning) => beginning !== "" && beginning.length < name.length - 1);
}
