import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { parse } from "yaml";
import { readTutorial } from "./read-tutorial.ts";
import { TutorialShell } from "./tutorial-shell.ts";

interface ComposeServices {
  readonly services: Readonly<
    Record<string, { readonly networks: readonly string[]; readonly profiles?: readonly string[] }>
  >;
  readonly networks: Readonly<Record<string, unknown>>;
}

const CLONE = join(import.meta.dirname, "../..");
/** Compose calls a project after the directory of its file. */
const PROJECT = "deploy";
const { lines } = readTutorial("docs/compose.md", "Several cells in containers");

let clone: string;
let programs: string;

// A copy of the clone whose deploy/ the commands may change, and a `docker` that only writes down how it was called.
beforeAll(() => {
  const scratch = mkdtempSync(join(tmpdir(), "berth-compose-page-"));
  [clone, programs] = [join(scratch, "berth"), join(scratch, "programs")];
  for (const directory of [clone, programs]) mkdirSync(directory);
  for (const name of readdirSync(CLONE)) if (name !== "deploy") symlinkSync(join(CLONE, name), join(clone, name));
  cpSync(join(CLONE, "deploy"), join(clone, "deploy"), {
    recursive: true,
    filter: (path) => !path.endsWith("/secrets"),
  });
  const docker = join(programs, "docker");
  writeFileSync(docker, '#!/bin/sh\n(IFS="	"; echo "$*") >>"$CALLS"\nenv | grep ^BERTH_ >>"$VARIABLES"\nexit 0\n');
  chmodSync(docker, 0o755);
});
afterAll(() => rmSync(join(clone, ".."), { recursive: true }));

const file = () => readFileSync(join(clone, "deploy/compose.yaml"), "utf8");

/** Types the command in the copy. Resolves with the arguments of the `docker` that it called, if any. */
async function typed(line: string): Promise<readonly string[]> {
  const calls = join(programs, "calls");
  rmSync(calls, { force: true });
  const env = {
    PATH: [programs, process.env["PATH"]].join(delimiter),
    CALLS: calls,
    VARIABLES: join(programs, "variables"),
  };
  const shell = new TutorialShell({ directory: clone, env });
  try {
    expect([line, await shell.type(line)]).toMatchObject([line, { code: 0 }]);
  } finally {
    await shell.close();
  }
  return existsSync(calls) ? readFileSync(calls, "utf8").trimEnd().split("\t") : [];
}

/** Names of the call that are not in the compose file. */
function unknownNames([command, ...words]: readonly string[], compose: ComposeServices): readonly string[] {
  const { services, networks } = compose;
  if (command === "network") {
    const [network = "", container = ""] = words.slice(-2);
    const net = network.replace(`${PROJECT}_`, "");
    const service = container.replace(new RegExp(`^${PROJECT}-(.+)-1$`), "$1");
    const alias = words.includes("--alias") ? words[words.indexOf("--alias") + 1] : service;
    const isThere = net in networks && services[service]?.networks.includes(net) === true && alias === service;
    return isThere ? [] : [network, container];
  }
  const after = (flag: string) => (words.includes(flag) ? [words[words.indexOf(flag) + 1] ?? ""] : []);
  const profiles = Object.values(services).flatMap((service) => service.profiles ?? []);
  return [
    ...after("-f").filter((path) => !existsSync(join(clone, path))),
    ...after("--rm").filter((service) => !(service in services)),
    ...after("--profile").filter((profile) => !profiles.includes(profile)),
  ];
}

test("the commands of docs/compose.md make their files, and name only what the compose file has", async () => {
  const unknown: string[] = [];
  let calls = 0;
  for (const line of lines) {
    // It builds images, for which a Docker engine is necessary. `npm run test:compose` calls it.
    if (line === "deploy/build-images.sh") {
      expect(statSync(join(clone, line)).mode & 0o111).not.toBe(0);
      continue;
    }
    const call = await typed(line);
    if (call.length === 0) continue;
    calls += 1;
    unknown.push(...unknownNames(call, parse(file()) as ComposeServices).map((name) => `${line}: ${name}`));
  }
  expect(unknown).toEqual([]);
  expect(calls).toBeGreaterThan(5);
  const given = new Set(lines.flatMap((line) => line.match(/^(BERTH_\w+)(?==)/g) ?? []));
  expect(given.size).toBeGreaterThan(1);
  expect([...given].filter((name) => !file().includes(`\${${name}`))).toEqual([]);
  expect(readFileSync(join(programs, "variables"), "utf8")).toContain("BERTH_ALLOW_UNAUTHENTICATED_NETWORK=true");
});

test("after the commands for more cells, five cells of 200 hosts have their services and their secrets", () => {
  const { services } = parse(file()) as {
    readonly services: Readonly<
      Record<string, { readonly env_file?: readonly string[]; readonly environment?: Readonly<Record<string, string>> }>
    >;
  };
  const agents = Object.keys(services).filter((name) => name.endsWith("-agent"));
  expect(agents).toHaveLength(5);
  const named = Object.values(services).flatMap((service) => service.env_file ?? []);
  expect(named.length).toBeGreaterThan(10);
  expect(named.filter((path) => !existsSync(join(clone, "deploy", path)))).toEqual([]);
  expect(agents.map((name) => services[name]?.environment?.["BERTH_HOSTS"])).toEqual(Array(5).fill("200"));
});
