/**
 * Shares an amount out in proportion to what each place has, in whole units and never more than it has. The shares add up to the amount, or
 * to all that there is.
 */
export function spread(amount: number, sizes: readonly number[]): readonly number[] {
  const all = sizes.reduce((sum, size) => sum + size, 0);
  const given = Math.min(amount, all);
  let [sizeBefore, givenBefore] = [0, 0];
  return sizes.map((size) => {
    // By running sums, so that rounding never loses a unit.
    sizeBefore += size;
    const share = Math.floor((given * sizeBefore) / Math.max(1, all)) - givenBefore;
    givenBefore += share;
    return share;
  });
}
