import { StoreError } from "../core/stores/store-error.ts";

/** An object whose asynchronous methods fail while it is severed, as those of a database that cannot be reached. */
export class Severable<Target extends object> {
  readonly target: Target;
  #isSevered = false;

  /** `why` is the reason in the errors. */
  constructor(of: Target, why: string) {
    this.target = new Proxy(of, {
      get: (original, name) => {
        const value: unknown = Reflect.get(original, name, original);
        if (typeof value !== "function") return value;
        return (...args: unknown[]) =>
          this.#isSevered
            ? Promise.reject(new StoreError("unavailable", String(name), why))
            : value.apply(original, args);
      },
    });
  }

  get isSevered(): boolean {
    return this.#isSevered;
  }

  sever(): void {
    this.#isSevered = true;
  }

  heal(): void {
    this.#isSevered = false;
  }
}
