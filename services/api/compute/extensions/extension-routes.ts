import { Type } from "typebox";
import { callOf } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { notFound } from "../../http/fault.ts";
import { AnyQuery, LinksSchema } from "../../http/schema.ts";
import { type Extension, SERVED_EXTENSIONS } from "./served-extensions.ts";

const ExtensionView = Type.Object({
  alias: Type.String(),
  name: Type.String(),
  description: Type.String(),
  links: LinksSchema,
  namespace: Type.String(),
  updated: Type.String(),
});
/** As in Nova, these values are the same for all extensions and mean nothing. */
const CONSTANTS = {
  links: [],
  namespace: "http://docs.openstack.org/compute/ext/fake_xml",
  updated: "2014-12-03T00:00:00Z",
};

/** Registers `/extensions`, for every caller. Source: Nova's api-ref, "Extensions (DEPRECATED)". */
export function registerExtensionRoutes(http: Http): void {
  const list = { querystring: AnyQuery, response: { 200: Type.Object({ extensions: Type.Array(ExtensionView) }) } };
  http.get("/extensions", { config: { rule: "extensions" }, schema: list }, async (request) => {
    callOf(request);
    return { extensions: SERVED_EXTENSIONS.map(extensionView) };
  });

  const show = {
    params: Type.Object({ alias: Type.String() }),
    querystring: AnyQuery,
    response: { 200: Type.Object({ extension: ExtensionView }) },
  };
  http.get("/extensions/:alias", { config: { rule: "extensions" }, schema: show }, async (request) => {
    callOf(request);
    const found = SERVED_EXTENSIONS.find(({ alias }) => alias === request.params.alias);
    if (found === undefined) throw notFound("The resource could not be found.");
    return { extension: extensionView(found) };
  });
}

function extensionView(extension: Extension) {
  return { ...extension, ...CONSTANTS };
}
