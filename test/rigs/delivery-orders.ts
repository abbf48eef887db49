/** Delivers in order, each message once. */
export const inOrder = (limit: number): number => (limit === 10 ? 1 : 0);
/** Delivers in order, and every other message again at the end. */
export function twice(): (limit: number) => number {
  let count = 0;
  return (limit) => {
    count += limit === 10 ? 1 : 0;
    return limit === 10 ? count % 2 : 0;
  };
}
/** Delivers in order, and the message of this number again at the end. */
export function twiceOnly(at: number): (limit: number) => number {
  let count = -1;
  return (limit) => {
    if (limit !== 10) return 0;
    count += 1;
    return count === at ? 0 : 1;
  };
}
/** Delivers the last message first, so that messages overtake each other wherever they can. */
export const backwards = (limit: number): number => (limit === 10 ? 1 : limit - 1);
