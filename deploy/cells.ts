import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { composeText } from "./compose-file.ts";

const USAGE = `usage: node deploy/cells.ts [N] [--hosts H] [--out FILE] [--secrets DIR]

Writes a compose file for N cells (3) of H hosts each (50).
  --out FILE      deploy/compose.yaml unless given; for one that lies elsewhere Compose wants --project-directory deploy
  --secrets DIR   where deploy/make-secrets.ts writes; ./secrets beside the compose file unless given`;

function main(argv: readonly string[]): number {
  const { values, positionals } = parseArgs({
    args: [...argv],
    allowPositionals: true,
    options: {
      hosts: { type: "string", default: "50" },
      out: { type: "string", default: join(import.meta.dirname, "compose.yaml") },
      secrets: { type: "string", default: "./secrets" },
    },
  });
  const cells = Number(positionals[0] ?? 3);
  const hosts = Number(values.hosts);
  if (!Number.isInteger(cells) || cells < 1 || !Number.isInteger(hosts) || hosts < 1 || positionals.length > 1) {
    process.stderr.write(`${USAGE}\n`);
    return 2;
  }
  writeFileSync(resolve(values.out), composeText({ cells, hosts, secretsDir: values.secrets }));
  return 0;
}

process.exit(main(process.argv.slice(2)));
