import { Type } from "typebox";
import { callOf } from "../../http/call.ts";
import { carrierFor, type Http } from "../../http/create-http.ts";
import { placeOf } from "../../http/links.ts";
import { adminPassword } from "../servers/admin-password.ts";
import { rebuiltView } from "../servers/changed-server-view.ts";
import { showServer } from "../servers/show-server.ts";
import type { ActionDeps, ActionOptions } from "./action-call.ts";
import { runAction } from "./run-action.ts";
import { SERVER_ACTIONS } from "./server-actions.ts";

const Params = Type.Object({ id: Type.String() });
const Body = Type.Unsafe<Record<string, unknown>>({ type: "object", minProperties: 1, maxProperties: 1 });

/** Up to this microversion an evacuation answers with a password. */
const PASSWORD_UNTIL_MINOR = 13;

/** From this microversion on, the id of a new image is in the body, and before it its URL is in a header. */
const IMAGE_ID_FROM_MINOR = 45;

/** `POST /servers/{id}/action`. */
export function registerActionRoutes(
  http: Http,
  deps: ActionDeps,
  options: ActionOptions & { readonly prefix: string; readonly publicUrl: string | null },
): void {
  const action = { config: { actions: SERVER_ACTIONS }, schema: { params: Params, body: Body } };
  http.post("/servers/:id/action", action, async (request, reply) => {
    const call = callOf(request);
    const { id } = request.params;
    const answer = await runAction(deps, request.body, { id, call, carrier: carrierFor(request) }, options);
    reply.code(answer.status);
    if (answer.body !== undefined) return answer.body;
    const password = options.instancePasswords ? { adminPass: adminPassword(answer.givenPassword) } : {};
    if (answer.imageId !== undefined) {
      if (call.minor >= IMAGE_ID_FROM_MINOR) return { image_id: answer.imageId };
      const origin = options.publicUrl ?? `${request.protocol}://${request.host}`;
      return reply.header("location", `${origin}/image/v2/images/${answer.imageId}`).send();
    }
    if (answer.shows === "password" && call.minor <= PASSWORD_UNTIL_MINOR && options.instancePasswords) return password;
    if (answer.shows !== "server") return reply.send();
    let userData = "";
    const view = await showServer(deps, request, id, options, (spec) => {
      const after = answer.after?.(spec) ?? spec;
      userData = after.userData;
      return after;
    });
    const { versioned } = placeOf(request, options.prefix, options.publicUrl);
    reply.header("location", `${versioned}/servers/${view.id}`);
    return { server: { ...rebuiltView(view, userData === "" ? null : userData, call.minor), ...password } };
  });
}
