/** The fields of an OpenAPI document of this project that its reference shows. */
interface Operation {
  readonly summary: string;
  /** Missing where there are no microversions. */
  readonly "x-since"?: string;
  readonly "x-until"?: string;
  readonly "x-policy-rule"?: string;
  readonly "x-actions"?: Readonly<Record<string, Facts>>;
  /** Empty where no token is needed. */
  readonly security?: readonly unknown[];
  readonly parameters: readonly { readonly name?: string; readonly description?: string }[];
  readonly requestBody?: Content;
  readonly responses: Readonly<Record<string, Content>>;
}
type Facts = Pick<Operation, "x-since" | "x-until" | "x-policy-rule">;
type Content = { readonly $ref?: string; readonly content?: Readonly<Record<string, { readonly schema: object }>> };

/** The reference of an API in Markdown, out of its OpenAPI document. `guide` is a page about the API. */
export function referencePage(document: object, guide: string): string {
  const { info, paths, components } = document as {
    readonly info: Readonly<Record<"title" | "version" | "summary" | "description", string>>;
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation | readonly unknown[]>>>>;
    readonly components: { readonly schemas: Readonly<Record<string, object>> };
  };
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([verb, operation]) =>
      verb === "parameters" ? [] : [operationText(`${verb.toUpperCase()} ${path}`, operation as Operation)],
    ),
  );
  const schemas = Object.entries(components.schemas).map(([name, schema]) => `### ${name}\n\n${fenced(schema)}`);
  const head = `# ${info.title} API ${info.version}\n\n${info.summary} ${info.description} See [its guide](${guide}).`;
  return [head, "## Calls", ...operations, "## Schemas", ...schemas, ""].join("\n\n");
}

function operationText(name: string, operation: Operation): string {
  const { summary, parameters, requestBody, responses } = operation;
  const own = parameters.flatMap(({ name: parameter, description }) =>
    parameter === undefined ? [] : [[`\`${parameter}\``, cell(description)]],
  );
  const actions = Object.entries(operation["x-actions"] ?? {}).map(([action, facts]) => [
    ...[`\`${action}\``, rangeText(facts), ruleText(facts)],
  ]);
  const access = operation.security?.length === 0 ? "without a token" : ruleText(operation);
  return [
    `### ${name}`,
    `${summary}.${sentence([rangeText(operation), access])}`,
    ...table(["parameter", "meaning"], own),
    ...table(["action", "microversions", ""], actions),
    ...(requestBody === undefined ? [] : [`Body: ${schemaNames(requestBody)}.`]),
    `Answers: ${Object.entries(responses)
      .map(([status, content]) => `${status}${content.content === undefined ? "" : ` ${schemaNames(content)}`}`)
      .join(", ")}.`,
  ].join("\n\n");
}

function rangeText({ "x-since": since, "x-until": until }: Facts): string {
  if (since === undefined) return "";
  return until === undefined ? `From ${since} on` : `From ${since} to ${until}`;
}

function sentence(parts: readonly string[]): string {
  const text = parts.filter((part) => part !== "").join("; ");
  return text === "" ? "" : ` ${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

const ruleText = ({ "x-policy-rule": rule }: Facts): string => (rule === undefined ? "" : `policy \`${rule}\``);

function table(head: readonly string[], rows: readonly (readonly string[])[]): readonly string[] {
  if (rows.length === 0) return [];
  const lines = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  return [lines.join("\n")];
}

/** Links to the schemas that a body may have, newest first. */
function schemaNames(body: Content): string {
  const names = [...JSON.stringify(body.content).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(
    ([, name = ""]) => `[${name}](#${name.toLowerCase().replaceAll(".", "")})`,
  );
  return names.join(" or ");
}

const cell = (text = ""): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");

const fenced = (content: object): string => `\`\`\`json\n${JSON.stringify(content, null, 2)}\n\`\`\``;
