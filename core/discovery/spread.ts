/**
 * Divides an amount in proportion to the size of each place, in whole units, without exceeding any size. The shares add up to the amount,
 * or to all sizes together when the amount is greater.
 */
export function spread(amount: number, sizes: readonly number[]): readonly number[] {
  const all = sizes.reduce((sum, size) => sum + size, 0);
  const given = Math.min(amount, all);
  let [sizeBefore, givenBefore] = [0, 0];
  return sizes.map((size) => {
    // Running sums ensure that rounding never loses a unit.
    sizeBefore += size;
    const share = Math.floor((given * sizeBefore) / Math.max(1, all)) - givenBefore;
    givenBefore += share;
    return share;
  });
}
