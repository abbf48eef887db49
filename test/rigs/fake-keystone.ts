import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { ServiceCredentials } from "../../adapters/openstack/keystone-session.ts";
import { FakeKeystoneLimits } from "./fake-keystone-limits.ts";

/** The part of Keystone v3 that is needed to validate tokens, for tests. */
export interface FakeKeystone {
  readonly url: string;
  /** The valid tokens, with Keystone's description of each. */
  readonly tokens: Map<string, unknown>;
  /** The tokens that have expired, which only those services are told of that ask for expired ones, too. */
  readonly expired: Map<string, unknown>;
  /** The requests in order: `login`, or the token that was validated. */
  readonly asked: string[];
  /** The projects that exist, if any are asked for. */
  readonly projects: Set<string>;
  /** Answers with this status instead (0: does not answer), until it is null again. */
  broken: number | null;
  password: string;
  /** Its unified limits. */
  readonly limits: FakeKeystoneLimits;
  /** The catalogue that a login gets. */
  catalog: readonly unknown[];
  /** Milliseconds for which the tokens of logins are valid; null does not tell. */
  loginLifeMs: number | null;
  /** The last token that a login got. */
  readonly serviceToken: string;
  /** How many more requests are refused because of the caller's own token. */
  serviceTokensRefused: number;
  /** Called before each answer about a token. */
  hold: () => Promise<void>;
  /** Makes the token of this service's own user invalid. */
  revokeServiceToken(): void;
  close(): Promise<void>;
}

/** The credentials of a user of the default domain. */
export function passwordOf(user: string, password: string, project = "service"): ServiceCredentials {
  return { kind: "password", user, password, project, userDomain: "Default", projectDomain: "Default" };
}

/** Keystone's description of a token. */
export function tokenDocument(fields: {
  readonly user: string;
  readonly project?: string;
  readonly domain?: string;
  readonly system?: boolean;
  readonly roles: readonly string[];
  readonly expiresAtMs: number;
  readonly accessRules?: readonly { readonly service: string; readonly method: string; readonly path: string }[];
}): unknown {
  const { user, project, domain, system, roles, expiresAtMs, accessRules } = fields;
  return {
    token: {
      methods: ["password"],
      user: {
        id: user,
        name: `name of ${user}`,
        domain: { id: "default", name: "Default" },
        password_expires_at: null,
      },
      ...(project === undefined
        ? {}
        : { project: { id: project, name: "p", domain: { id: "default", name: "Default" } } }),
      ...(domain === undefined ? {} : { domain: { id: domain, name: "d" } }),
      ...(system === undefined ? {} : { system: { all: system } }),
      ...(accessRules !== undefined && {
        application_credential: { id: "credential", name: "c", restricted: true, access_rules: accessRules },
      }),
      roles: roles.map((name) => ({ id: `id of ${name}`, name })),
      expires_at: new Date(expiresAtMs).toISOString(),
      issued_at: new Date(0).toISOString(),
      audit_ids: ["x"],
    },
  };
}

interface RestrictedToken {
  readonly token?: { readonly application_credential?: { readonly access_rules?: unknown } };
}

export async function startFakeKeystone(): Promise<FakeKeystone> {
  let serviceToken = "";
  let logins = 0;
  let isOfSystem = false;
  const server = createServer((request, response) => {
    void serve(request, response);
  });
  const fake: FakeKeystone = {
    get url() {
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v3`;
    },
    tokens: new Map(),
    expired: new Map(),
    asked: [],
    projects: new Set(),
    broken: null,
    password: "secret",
    limits: new FakeKeystoneLimits(),
    catalog: [],
    loginLifeMs: null,
    get serviceToken() {
      return serviceToken;
    },
    serviceTokensRefused: 0,
    hold: async () => {},
    revokeServiceToken: () => {
      serviceToken = "";
    },
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = (await request.toArray()).join("");
    const subject = request.headers["x-subject-token"];
    fake.asked.push(request.method === "POST" ? "login" : String(subject));
    if (fake.broken === 0) return void request.socket.destroy();
    if (fake.broken !== null) return answer(response, fake.broken, { error: {} });
    const [path, query = ""] = (request.url ?? "").split("?");
    const project = /^\/v3\/projects\/(.+)$/.exec(path ?? "")?.[1];
    if (project !== undefined) {
      const [status, document] = showProject(decodeURIComponent(project), String(request.headers["x-auth-token"]));
      return answer(response, status, document);
    }
    if (path !== "/v3/auth/tokens") {
      if (serviceToken === "" || request.headers["x-auth-token"] !== serviceToken) return answer(response, 401, {});
      const document = fake.limits.answer(path ?? "", new URLSearchParams(query), isOfSystem);
      return answer(response, document === null ? 404 : 200, document ?? {});
    }
    if (request.method === "POST") return logIn(response, body, query === "nocatalog");
    if (serviceToken === "" || request.headers["x-auth-token"] !== serviceToken) return answer(response, 401, {});
    if (fake.serviceTokensRefused > 0) {
      fake.serviceTokensRefused -= 1;
      return answer(response, 401, {});
    }
    await fake.hold();
    const expiredToo = query.split("&").includes("allow_expired=1");
    const known = fake.tokens.get(String(subject)) ?? (expiredToo ? fake.expired.get(String(subject)) : undefined);
    const isRestricted =
      (known as RestrictedToken | undefined)?.token?.application_credential?.access_rules !== undefined;
    // Like Keystone, it finds no token with access rules for a service that does not say that it enforces them.
    const isHidden = isRestricted && request.headers["openstack-identity-access-rules"] !== "1.0";
    const document = isHidden ? undefined : known;
    answer(response, document === undefined ? 404 : 200, document ?? { error: { code: 404 } });
  }

  /** Only admins may know of all projects. */
  function showProject(id: string, token: string): readonly [status: number, document: unknown] {
    const known = fake.tokens.get(token) as
      | { readonly token: { readonly roles: readonly { name: string }[] } }
      | undefined;
    if (known === undefined) return [401, { error: { code: 401 } }];
    if (!known.token.roles.some(({ name }) => name === "admin")) return [403, { error: { code: 403 } }];
    return fake.projects.has(id) ? [200, { project: { id } }] : [404, { error: { code: 404 } }];
  }

  function logIn(response: ServerResponse, body: string, withoutCatalog: boolean): void {
    const { auth } = JSON.parse(body);
    const { password, application_credential: credential } = auth.identity;
    const user = password?.user;
    const known =
      credential === undefined
        ? user.name === "placement" && user.password === fake.password && user.domain.name === "Default"
        : credential.id === "credential" && credential.secret === fake.password && auth.scope === undefined;
    if (known) {
      isOfSystem = auth.scope?.system?.all === true;
      logins += 1;
      serviceToken = `service-token-${logins}`;
      response.setHeader("x-subject-token", serviceToken);
    }
    const token = {
      ...(!withoutCatalog && { catalog: fake.catalog }),
      ...(fake.loginLifeMs !== null && { expires_at: new Date(Date.now() + fake.loginLifeMs).toISOString() }),
    };
    answer(response, known ? 201 : 401, { token });
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return fake;
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}
