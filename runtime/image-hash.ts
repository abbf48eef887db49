const SHA512 = /^[0-9a-f]{128}$/;

/** Whether a text is a SHA-512 in lower-case hexadecimal. Only such a text may become part of a file's name. */
export function isSha512(text: string): boolean {
  return SHA512.test(text);
}

/**
 * The SHA-512 that the properties of an image state about its bits. Null if they state none. Throws an Error that says why no host can use the image
 * if it is none: what was stored may come from a caller.
 */
export function statedSha512(properties: Readonly<Record<string, string>>): string | null {
  const { os_hash_algo: algorithm, os_hash_value: value } = properties;
  if (algorithm !== "sha512" || value === undefined) return null;
  const sha512 = value.toLowerCase();
  if (isSha512(sha512)) return sha512;
  throw new Error("os_hash_value of its image is no SHA-512 of 128 hexadecimal digits: register the image again");
}
