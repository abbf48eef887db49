/**
 * Licences of dependencies under which the package may be given away: none of them requires that software which uses the dependency
 * has the same licence.
 */
const ALLOWED = [
  "0BSD",
  "Apache-2.0",
  "BSD-2-Clause",
  "BSD-3-Clause",
  "BlueOak-1.0.0",
  "CC0-1.0",
  "ISC",
  "MIT",
  "Unlicense",
];

/**
 * Whether an SPDX expression allows it: of alternatives (OR) one is enough, of parts (AND) each one counts. Nested expressions are refused, and so
 * is a package that states no licence.
 */
export function isAllowedLicence(expression: string | undefined): boolean {
  const words = (expression ?? "").replace(/^\((.*)\)$/, "$1").split(/ (AND|OR) /);
  const names = words.filter((_, index) => index % 2 === 0);
  const joints = new Set(words.filter((_, index) => index % 2 === 1));
  if (joints.size > 1) return false;
  const isAllowed = (name: string) => ALLOWED.includes(name);
  return joints.has("OR") ? names.some(isAllowed) : names.every(isAllowed);
}
