import { withoutTrailing } from "../../core/without-trailing.ts";
import { boolean, integer, text } from "../../runtime/setting-kinds.ts";
import { optional, SettingsError, setting } from "../../runtime/settings.ts";
import { runCommand } from "../run-command.ts";
import { apiAddress } from "./api-address.ts";
import type { ShownExplanation } from "./explain-answer.ts";
import type { ShownLife } from "./life-answer.ts";
import { callOperatorsApi, operatorSettings } from "./operators-client.ts";
import { explanationText } from "./print-explanation.ts";
import { lifeText } from "./print-life.ts";
import { requireServerUuid } from "./require-server-uuid.ts";

const declaration = {
  command: "berth explain",
  about:
    "Shows a server's whole life: who requested it, where it was placed and why, its attempts, hops and moves. With --flavor instead of a server, it shows where a new one would go and why not elsewhere, without placing it.",
  positionals: ["[SERVER_UUID…]"],
  settings: {
    ...operatorSettings,
    flavor: optional(text(), { about: "id of the flavor of the new server" }),
    image: optional(text(), { about: "its image" }),
    hint: optional(text(), { about: "scheduler hints as k=v, separated by commas" }),
    zone: optional(text(), { about: "its availability zone" }),
    host: optional(text(), { about: "a host, to show whether it would be chosen and why not" }),
    project: optional(text(), { about: "project of the new server" }),
    count: setting(integer({ min: 1, max: 100 }), { about: "number of servers", default: "1" }),
    alternates: setting(integer({ min: 0, max: 19 }), {
      about:
        "maximum number of alternates; schedulers give a build one more than their --max-attempts, a move one fewer",
      default: "2",
    }),
    limit: setting(integer({ min: 1, max: 100 }), {
      about: "number of hosts that are shown with their weights",
      default: "5",
    }),
    json: setting(boolean, { about: "as JSON", default: "false" }),
  },
};

/** `berth explain SERVER_UUID` and `berth explain --flavor F …`. */
export function runExplainCommand(argv: readonly string[]): Promise<number> {
  return runCommand(declaration, argv, async (settings, servers) => {
    if ((settings.flavor === null) === (servers.length === 0))
      throw new SettingsError("name either servers, or a flavor with --flavor");
    if (settings.flavor === null) return tellLives(settings, servers);
    const { flavor, image, zone, host, project, count, alternates, limit } = settings;
    const answer = await callOperatorsApi<ShownExplanation>(settings, "POST", "/explain", {
      ...{ flavor, count, alternates, limit },
      ...(image !== null && { image }),
      ...(zone !== null && { zone }),
      ...(host !== null && { host }),
      ...(project !== null && { project_id: project }),
      ...(settings.hint !== null && { hints: parseHints(settings.hint) }),
    });
    process.stdout.write(settings.json ? jsonOf(answer) : explanationText(answer, host));
    return 0;
  });
}

async function tellLives(
  settings: Parameters<typeof callOperatorsApi>[0] & { readonly json: boolean },
  servers: readonly string[],
): Promise<number> {
  const lives: ShownLife[] = [];
  const address = withoutTrailing(apiAddress({ api: settings.api, dataDir: settings.dataDir ?? null }), "/");
  for (const server of servers.map(requireServerUuid)) {
    const life = await callOperatorsApi<ShownLife>(settings, "GET", `/explain/${encodeURIComponent(server)}`);
    // An older api does not say where its dashboard is.
    const path = life.dashboard ?? null;
    lives.push({ ...life, dashboard: path === null ? null : `${address}${path}` });
  }
  process.stdout.write(settings.json ? jsonOf({ servers: lives }) : lives.map(lifeText).join("\n"));
  return 0;
}

/**
 * Parses hints like `same_host=UUID,group=UUID`. A hint that is given several times has several values. A comma that is not followed by a
 * name is part of the value: `query=[">=","$free_ram_mb",1024]`.
 */
export function parseHints(given: string): Record<string, string[]> {
  const hints: Record<string, string[]> = {};
  for (const word of given.split(/,(?=\w+=)/)) {
    const at = word.indexOf("=");
    if (at < 1) throw new SettingsError(`${JSON.stringify(word)} is not KEY=VALUE`);
    const [name, value] = [word.slice(0, at), word.slice(at + 1)];
    hints[name] = [...(hints[name] ?? []), value];
  }
  return hints;
}

function jsonOf(answer: unknown): string {
  return `${JSON.stringify(answer, null, 2)}\n`;
}
