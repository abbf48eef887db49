import { openApiDocument } from "../services/api/placement/openapi.ts";

/** The fields of the document that the reference shows. */
interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly "x-since": string;
  readonly "x-policy-rule"?: string;
  readonly parameters: readonly {
    readonly $ref?: string;
    readonly name?: string;
    readonly in?: string;
    readonly description?: string;
    readonly schema?: object;
  }[];
  readonly requestBody?: { readonly content: Readonly<Record<string, { readonly schema: object }>> };
  readonly responses: Readonly<Record<string, Content>>;
}
type Content = { readonly $ref?: string; readonly content?: Readonly<Record<string, { readonly schema: object }>> };

/** The document that the reference is made of. */
export const placementDocument = openApiDocument("/placement");

/** The reference of the Placement API in Markdown, out of its OpenAPI document. */
export function placementReference(): string {
  const { info, paths, components } = placementDocument as {
    readonly info: { readonly version: string; readonly summary: string; readonly description: string };
    readonly paths: Readonly<Record<string, Readonly<Record<string, Operation | readonly unknown[]>>>>;
    readonly components: { readonly schemas: Readonly<Record<string, object>> };
  };
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).flatMap(([verb, operation]) =>
      verb === "parameters" ? [] : [operationText(`${verb.toUpperCase()} ${path}`, operation as Operation)],
    ),
  );
  const schemas = Object.entries(components.schemas).map(([name, schema]) => `### ${name}\n\n${fenced(schema)}`);
  const head = `# Placement API ${info.version}\n\n${info.summary} ${info.description} See [its guide](placement.md).`;
  return [head, "## Calls", ...operations, "## Schemas", ...schemas, ""].join("\n\n");
}

function operationText(name: string, operation: Operation): string {
  const { summary, parameters, requestBody, responses } = operation;
  const rule = operation["x-policy-rule"];
  const own = parameters.filter((parameter) => parameter.name !== undefined);
  return [
    `### ${name}`,
    `${summary}. From ${operation["x-since"]} on${rule === undefined ? ", without a token" : `; policy \`${rule}\``}.`,
    ...(own.length === 0
      ? []
      : [
          [
            "| parameter | meaning |",
            "| --- | --- |",
            ...own.map((one) => `| \`${one.name}\` | ${cell(one.description)} |`),
          ].join("\n"),
        ]),
    ...(requestBody === undefined ? [] : [`Body: ${schemaNames(requestBody)}.`]),
    `Answers: ${Object.entries(responses)
      .map(([status, content]) => `${status}${content.content === undefined ? "" : ` ${schemaNames(content)}`}`)
      .join(", ")}.`,
  ].join("\n\n");
}

/** Links to the schemas that a body may have, newest first. */
function schemaNames(body: { readonly content?: Content["content"] }): string {
  const names = [...JSON.stringify(body.content).matchAll(/"\$ref":"#\/components\/schemas\/([^"]+)"/g)].map(
    ([, name = ""]) => `[${name}](#${name.toLowerCase().replaceAll(".", "")})`,
  );
  return names.join(" or ");
}

const cell = (text = ""): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");

const fenced = (content: object): string => `\`\`\`json\n${JSON.stringify(content, null, 2)}\n\`\`\``;
