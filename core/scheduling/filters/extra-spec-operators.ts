/** Compares a host's value with the required ones. */
type Comparison = (value: string, required: readonly string[]) => boolean;

const OPERATORS: Readonly<Record<string, Comparison>> = {
  // In Nova this operator has always meant "at least", whatever the sign suggests.
  "=": numbers((value, required) => value >= required),
  "==": numbers((value, required) => value === required),
  "!=": numbers((value, required) => value !== required),
  ">=": numbers((value, required) => value >= required),
  "<=": numbers((value, required) => value <= required),
  "s==": (value, [required = ""]) => value === required,
  "s!=": (value, [required = ""]) => value !== required,
  "s<": (value, [required = ""]) => value < required,
  "s<=": (value, [required = ""]) => value <= required,
  "s>": (value, [required = ""]) => value > required,
  "s>=": (value, [required = ""]) => value >= required,
  "<in>": (value, [required = ""]) => value.includes(required),
  "<all-in>": (value, required) => required.every((part) => value.includes(part)),
  "<or>": (value, required) => required.some((choice, index) => index % 2 === 0 && choice === value),
};

/**
 * Whether a value satisfies a requirement like `>= 4`, `s== fast`, `<in> gpu`, `<or> a <or> b`. Without an operator the two must be equal.
 * An operator without an operand is never satisfied, nor is a comparison of text that is not a number. Source: Nova's extra specs
 * operators.
 */
export function satisfies(value: string, requirement: string): boolean {
  const [operator = "", ...operands] = requirement.split(/\s+/).filter((word) => word !== "");
  const compare = Object.hasOwn(OPERATORS, operator) ? OPERATORS[operator] : undefined;
  if (compare === undefined) return value === requirement;
  return operands.length > 0 && compare(value, operands);
}

function numbers(compare: (value: number, required: number) => boolean): Comparison {
  return (value, [required = ""]) => {
    const [a, b] = [numberOf(value), numberOf(required)];
    return a !== null && b !== null && compare(a, b);
  };
}

function numberOf(text: string): number | null {
  const value = text.trim() === "" ? Number.NaN : Number(text);
  return Number.isNaN(value) ? null : value;
}
