import { readdirSync } from "node:fs";
import { describeMachine } from "./describe-machine.ts";

// `npm run bench` runs every bench/<name>.bench.ts, and `npm run bench -- <name> …` runs only the named ones. Each file exports `run()`,
// which prints its figures: the medians of five rounds (see measure.ts).

const suffix = ".bench.ts";
const known = readdirSync(import.meta.dirname)
  .filter((file) => file.endsWith(suffix))
  .map((file) => file.slice(0, -suffix.length))
  .sort();
const wanted = process.argv.slice(2);
const unknown = wanted.filter((name) => !known.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`bench: unknown: ${unknown.join(", ")}; there are: ${known.join(", ")}\n`);
  process.exit(2);
}

process.stdout.write(`${describeMachine()}\n`);
for (const name of wanted.length > 0 ? wanted : known) {
  process.stdout.write(`\n${name}\n`);
  const bench = (await import(`./${name}${suffix}`)) as { run(): Promise<void> };
  await bench.run();
}
process.exit(0);
