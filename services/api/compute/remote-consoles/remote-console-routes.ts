import { Type } from "typebox";
import { consoleTokenHash } from "../../../../adapters/consoles/console-key.ts";
import type { ConsoleTokenStore } from "../../../../core/stores/api/console-token-store.ts";
import { callOf } from "../../http/call.ts";
import type { Http } from "../../http/create-http.ts";
import { Fault, invalidField, notFound } from "../../http/fault.ts";
import { AnyQuery } from "../../http/schema.ts";
import {
  CONSOLE_TYPES,
  type ConsoleProtocol,
  openRemoteConsole,
  type RemoteConsoleDeps,
  type RemoteConsoleOptions,
  SPICE_DIRECT,
} from "./open-remote-console.ts";

const REMOTE_CONSOLES_FROM_MINOR = 6;
const MKS_FROM_MINOR = 8;
/** Before this microversion only tokens of RDP consoles are shown, which Berth does not have. */
const TOKENS_FROM_MINOR = 31;
const SPICE_DIRECT_FROM_MINOR = 99;
/** From this microversion on the query of a token may have no parameters. */
const STRICT_TOKENS_FROM_MINOR = 99;

const words = <Word extends string>(values: readonly Word[]) =>
  Type.Unsafe<Word>({ type: "string", enum: [...values] });
const PROTOCOLS = Object.keys(CONSOLE_TYPES) as ConsoleProtocol[];
const OLDER_TYPES = Object.values(CONSOLE_TYPES).flat();
const TYPES = [...OLDER_TYPES, SPICE_DIRECT] as const;
const Body = Type.Object(
  {
    remote_console: Type.Object({ protocol: words(PROTOCOLS), type: words(TYPES) }, { additionalProperties: false }),
  },
  { additionalProperties: false },
);
const Answer = Type.Object({
  remote_console: Type.Object({ protocol: Type.String(), type: Type.String(), url: Type.String() }),
});
const TokenAnswer = Type.Object({
  console: Type.Object({
    instance_uuid: Type.String(),
    host: Type.String(),
    port: Type.Integer(),
    internal_access_path: Type.Union([Type.String(), Type.Null()]),
    tls_port: Type.Optional(Type.Null()),
  }),
});

/** `/servers/{id}/remote-consoles` and `/os-console-auth-tokens/{token}`. */
export function registerRemoteConsoleRoutes(http: Http, deps: RemoteConsoleDeps, options: RemoteConsoleOptions): void {
  const toOpen = {
    config: { since: REMOTE_CONSOLES_FROM_MINOR, rule: "os-remote-consoles" },
    schema: { params: Type.Object({ id: Type.String() }), body: Body, response: { 200: Answer } },
  };
  http.post("/servers/:id/remote-consoles", toOpen, async (request) => {
    const call = callOf(request);
    const { protocol, type } = request.body.remote_console;
    if (protocol === "mks" && call.minor < MKS_FROM_MINOR)
      throw invalidField("protocol", protocol, "'mks' is not one of ['vnc', 'spice', 'rdp', 'serial']");
    if (type === SPICE_DIRECT && call.minor < SPICE_DIRECT_FROM_MINOR)
      throw invalidField(
        "type",
        type,
        `'spice-direct' is not one of [${OLDER_TYPES.map((one) => `'${one}'`).join(", ")}]`,
      );
    const url = await openRemoteConsole(deps, call, { id: request.params.id, protocol, type }, options);
    return { remote_console: { protocol, type, url } };
  });

  const toShow = {
    config: { rule: "os-console-auth-tokens", hasSecretPath: true, queryStrictFrom: STRICT_TOKENS_FROM_MINOR },
    schema: { params: Type.Object({ token: Type.String() }), querystring: AnyQuery, response: { 200: TokenAnswer } },
  };
  http.get("/os-console-auth-tokens/:token", toShow, async (request) => {
    const { minor } = callOf(request);
    const found = await findToken(deps.consoleTokens, request.params.token, deps.clock.now());
    if (minor < TOKENS_FROM_MINOR) throw new Fault(401, "The requested console type details are not accessible");
    const { serverUuid, host, port, session, consoleType } = found;
    // Nova's VNC consoles have no such path.
    const path = consoleType === "serial" ? session : null;
    const place = { instance_uuid: serverUuid, host, port, internal_access_path: path };
    // Only SPICE consoles can have such a port.
    return { console: { ...place, ...(minor >= SPICE_DIRECT_FROM_MINOR && { tls_port: null }) } };
  });
}

async function findToken(tokens: ConsoleTokenStore | null, token: string, nowMs: number) {
  const found = tokens === null ? null : await tokens.token(consoleTokenHash(token), nowMs);
  if (found === null) throw notFound("Token not found");
  return found;
}
