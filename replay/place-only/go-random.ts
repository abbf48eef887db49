// The published experiments used Go's math/rand, whose numbers for a seed never change: an additive lagged Fibonacci generator (Mitchell
// and Reeds) over 607 words of 64 bits, x[k] = x[k − 607] + x[k − 273]. The same numbers give the same tasks in the same order.

const LENGTH = 607;
const LAG = 273;
const WORD = 64;
const WORD_MASK = (1n << 64n) - 1n;
const INT63_MASK = (1n << 63n) - 1n;
/** Go scrambles every seed with the state of seed 1 after this many numbers. */
const SCRAMBLE_STEPS = 7_800_000_000_000;
const LEHMER_MODULUS = 2_147_483_647;

/** Go's random numbers for a seed. */
export class GoRandom {
  readonly #words: BigUint64Array;
  #tap = 0;
  #feed = LENGTH - LAG;

  constructor(seed: number) {
    const scramble = scrambleWords();
    this.#words = seedWords(seed, 40n, 20n).map((word, index) => word ^ scramble[index]!);
  }

  /** Equals `rand.Int63`. */
  int63(): bigint {
    this.#tap = (this.#tap + LENGTH - 1) % LENGTH;
    this.#feed = (this.#feed + LENGTH - 1) % LENGTH;
    this.#words[this.#feed]! += this.#words[this.#tap]!;
    return this.#words[this.#feed]! & INT63_MASK;
  }

  /** Equals `rand.Intn` for limits below 2³¹: from 0 up to, but not including, `limit`. */
  below(limit: number): number {
    const range = 2 ** 31;
    const max = range - 1 - (range % limit);
    for (;;) {
      const drawn = Number(this.int63() >> 32n);
      if (drawn <= max) return drawn % limit;
    }
  }

  /** Equals `rand.Shuffle`: works in place, from the back. */
  shuffle(items: unknown[]): void {
    for (let at = items.length - 1; at > 0; at -= 1) {
      const other = this.#scaledBelow(at + 1);
      [items[at], items[other]] = [items[other], items[at]];
    }
  }

  /** Lemire's method, which Go uses where old programs do not depend on the numbers. */
  #scaledBelow(limit: number): number {
    const wide = BigInt(limit);
    const threshold = (2 ** 32 - limit) % limit;
    for (;;) {
      const product = (this.int63() >> 31n) * wide;
      if (Number(product & 0xffff_ffffn) >= threshold) return Number(product >> 32n);
    }
  }
}

function seedWords(seed: number, firstShift: bigint, secondShift: bigint): BigUint64Array {
  let value = seed % LEHMER_MODULUS || 89_482_311;
  const next = (): bigint => {
    // The product stays below 2⁴⁷, so it is exact.
    value = (value * 48_271) % LEHMER_MODULUS;
    return BigInt(value);
  };
  for (let skipped = 0; skipped < 20; skipped += 1) next();
  return BigUint64Array.from({ length: LENGTH }, () => (next() << firstShift) ^ (next() << secondShift) ^ next());
}

let scrambleKnown: BigUint64Array | undefined;

/**
 * The state after SCRAMBLE_STEPS numbers, computed by jumping: x to that power, modulo the polynomial of the recurrence, tells which words
 * of the first state add up to each wanted word. Cost: some tenths of a second, once.
 */
function scrambleWords(): BigUint64Array {
  if (scrambleKnown) return scrambleKnown;
  const first = seedWords(1, 20n, 10n);
  // The slots in the order in which they are renewed: 333, 332, …, 0, 606, …, 334.
  const slotOf = (step: number): number => (((LENGTH - LAG - 1 - step) % LENGTH) + LENGTH) % LENGTH;
  const sequence = new BigUint64Array(2 * LENGTH);
  for (let step = 0; step < LENGTH; step += 1) sequence[step] = first[slotOf(step)]!;
  for (let step = LENGTH; step < 2 * LENGTH; step += 1)
    sequence[step] = sequence[step - LENGTH]! + sequence[step - LAG]!;
  const power = powerOfX(SCRAMBLE_STEPS);
  const words = new BigUint64Array(LENGTH);
  for (let step = 0; step < LENGTH; step += 1) {
    let sum = 0n;
    for (let term = 0; term < LENGTH; term += 1) sum += power[term]! * sequence[step + term]!;
    words[slotOf((step + SCRAMBLE_STEPS) % LENGTH)] = sum;
  }
  scrambleKnown = words;
  return words;
}

/** x to the power, modulo x⁶⁰⁷ − x³³⁴ − 1 and 2⁶⁴. */
function powerOfX(exponent: number): BigUint64Array {
  let power: BigUint64Array = new BigUint64Array(LENGTH);
  power[0] = 1n;
  for (const bit of exponent.toString(2)) {
    power = square(power);
    if (bit === "1") power = reduce(BigUint64Array.of(0n, ...power));
  }
  return power;
}

/** The coefficients are packed into one big number, with room between them for the sums, so the square is one multiplication. */
function square(polynomial: BigUint64Array): BigUint64Array {
  const digits = 36;
  const hex = (coefficient: bigint): string => coefficient.toString(16).padStart(digits, "0");
  const packed = BigInt(`0x${[...polynomial].reverse().map(hex).join("")}`);
  const product = (packed * packed).toString(16).padStart(digits * (2 * LENGTH), "0");
  const squared = new BigUint64Array(2 * LENGTH - 1);
  for (let degree = 0; degree < squared.length; degree += 1) {
    const end = product.length - degree * digits;
    squared[degree] = BigInt(`0x${product.slice(end - WORD / 4, end)}`) & WORD_MASK;
  }
  return reduce(squared);
}

function reduce(polynomial: BigUint64Array): BigUint64Array {
  for (let degree = polynomial.length - 1; degree >= LENGTH; degree -= 1) {
    const coefficient = polynomial[degree]!;
    polynomial[degree - LENGTH]! += coefficient;
    polynomial[degree - LAG]! += coefficient;
  }
  return polynomial.slice(0, LENGTH);
}
