/** The same object with some methods replaced; the replacements see the original. For composing observers around stores. */
export function overriding<Target extends object>(target: Target, replacements: Partial<Target>): Target {
  return new Proxy(target, {
    get(original, name) {
      if (Object.hasOwn(replacements, name)) return Reflect.get(replacements, name);
      // Private fields live on the original: a method must be called on it.
      const value: unknown = Reflect.get(original, name, original);
      return typeof value === "function" ? value.bind(original) : value;
    },
  });
}
