/** The same object with some methods replaced; the replacements receive the original. Used to put observers around stores. */
export function overriding<Target extends object>(target: Target, replacements: Partial<Target>): Target {
  return new Proxy(target, {
    get(original, name) {
      if (Object.hasOwn(replacements, name)) return Reflect.get(replacements, name);
      // Private fields belong to the original, so its methods must be called on the original.
      const value: unknown = Reflect.get(original, name, original);
      return typeof value === "function" ? value.bind(original) : value;
    },
  });
}
