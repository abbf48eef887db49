/** Why no host can be searched for a request. `allowed` continues "must be …". An empty `value` means that the key is missing. */
export type RequestRefusal =
  | { readonly kind: "bad-extra-spec"; readonly key: string; readonly value: string; readonly allowed: string }
  | { readonly kind: "bad-image-property"; readonly key: string; readonly value: string; readonly allowed: string }
  /** The flavor and the image contradict each other. */
  | { readonly kind: "contradiction"; readonly flavor: NamedValue; readonly image: NamedValue; readonly why: string }
  | { readonly kind: "no-aggregate-for-project"; readonly projectId: string };

export interface NamedValue {
  readonly key: string;
  readonly value: string;
}

export function badExtraSpec(key: string, value: string, allowed: string): RequestRefusal {
  return { kind: "bad-extra-spec", key, value, allowed };
}

export function badImageProperty(key: string, value: string, allowed: string): RequestRefusal {
  return { kind: "bad-image-property", key, value, allowed };
}

/** The refusal as one line without a full stop: the key, the value, and what is allowed. */
export function describeRequestRefusal(refusal: RequestRefusal): string {
  switch (refusal.kind) {
    case "bad-extra-spec":
      return refusal.value === ""
        ? `extra spec ${refusal.key} is missing; it must be ${refusal.allowed}`
        : `extra spec ${refusal.key}=${refusal.value} must be ${refusal.allowed}`;
    case "bad-image-property":
      return `image property ${refusal.key}=${refusal.value} must be ${refusal.allowed}`;
    case "contradiction": {
      const { flavor, image, why } = refusal;
      return `image property ${image.key}=${image.value} contradicts the flavor's extra spec ${flavor.key}=${flavor.value}: ${why}`;
    }
    case "no-aggregate-for-project":
      return `no aggregate allows project ${refusal.projectId}`;
    default:
      return refusal satisfies never;
  }
}
