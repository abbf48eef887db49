import type { Clock } from "../../../runtime/clock.ts";
import { Fault } from "../http/fault.ts";
import type { AuthenticateToken } from "../http/identity.ts";
import { TokenRefused } from "../identity/token-refused.ts";
import type { AuthBody, AuthScope } from "./auth-schema.ts";
import { isDefaultDomain } from "./default-domain.ts";
import { GuessLimiter } from "./guess-limiter.ts";
import { type IssuedToken, TokenBook } from "./token-book.ts";
import { type KnownUser, UserDirectory } from "./user-directory.ts";
import type { UsersFile } from "./users-file.ts";

export interface OwnIdentitySettings {
  readonly tokenLifetimeMs: number;
  readonly tokensPerUserMax: number;
  /** How long the answer to a wrong password is held back. */
  readonly holdMs: number;
  readonly heldMax: number;
}

export const DEFAULT_OWN_IDENTITY_SETTINGS: OwnIdentitySettings = {
  tokenLifetimeMs: 3_600_000,
  tokensPerUserMax: 500,
  holdMs: 1_000,
  heldMax: 8,
};

/** A caller who has authenticated, by password or by a token. */
interface Authenticated {
  readonly user: KnownUser;
  readonly methods: readonly string[];
  /** The end of the token by which the caller authenticated. */
  readonly untilMs: number;
}

/**
 * Knows users by their passwords and issues tokens to them: a Keystone of one process, for trial clouds. `authenticate` is the counterpart of
 * `KeystoneAuthenticator.authenticate`.
 */
export class OwnIdentity {
  readonly directory: UserDirectory;
  readonly #tokens: TokenBook;
  readonly #guesses: GuessLimiter;

  constructor(deps: { readonly clock: Clock; readonly users: UsersFile }, settings: OwnIdentitySettings) {
    this.directory = new UserDirectory(deps.users);
    this.#tokens = new TokenBook(deps, {
      lifetimeMs: settings.tokenLifetimeMs,
      perUserMax: settings.tokensPerUserMax,
    });
    this.#guesses = new GuessLimiter(deps, settings);
  }

  /** Throws `TokenRefused`. */
  readonly authenticate: AuthenticateToken = async ({ headers }) => {
    const token = headers["x-auth-token"];
    const issued = typeof token === "string" ? this.#tokens.find(token) : null;
    if (issued === null) {
      const message = "The request you have made requires authentication: send a valid x-auth-token.";
      throw new TokenRefused(401, message, { "www-authenticate": 'Keystone uri="/identity"' });
    }
    const { userId, projectId, roles } = issued;
    return { userId, projectId, systemScope: null, domainId: null, roles };
  };

  find(token: string): IssuedToken | null {
    return this.#tokens.find(token);
  }

  revoke(token: string): void {
    this.#tokens.revoke(token);
  }

  /** Issues a token to a caller who proves to be a user. Refuses everybody else with a 401, which does not say what was wrong. */
  async logIn({ auth }: AuthBody): Promise<{ readonly token: string; readonly issued: IssuedToken }> {
    const { user, methods, untilMs } = await this.#identify(auth.identity);
    const projectId = this.#projectOf(auth.scope, user);
    const roles = projectId === null ? [] : (user.roles.get(projectId) ?? []);
    return this.#tokens.issue({ userId: user.id, projectId, roles, methods }, untilMs);
  }

  async #identify(identity: AuthBody["auth"]["identity"]): Promise<Authenticated> {
    const unknown = identity.methods.find((method) => method !== "password" && method !== "token");
    if (unknown !== undefined)
      throw new Fault(401, `Attempted to authenticate with an unsupported method: ${unknown}. Use password or token.`);
    const byToken = identity.methods.includes("token") ? this.#byToken(identity.token?.id) : null;
    if (!identity.methods.includes("password")) {
      if (byToken === null) throw unauthorized();
      return byToken;
    }
    if (identity.password === undefined) throw unauthorized();
    const user = await this.#byPassword(identity.password.user);
    if (byToken !== null && byToken.user.id !== user.id) throw unauthorized();
    return {
      user,
      methods: byToken === null ? ["password"] : ["password", "token"],
      untilMs: byToken?.untilMs ?? Number.POSITIVE_INFINITY,
    };
  }

  #byToken(token: string | undefined): Authenticated {
    const issued = token === undefined ? null : this.#tokens.find(token);
    const user = issued === null ? null : this.directory.user({ id: issued.userId });
    if (issued === null || user === null) throw unauthorized();
    return { user, methods: [...new Set(["token", ...issued.methods])], untilMs: issued.expiresAtMs };
  }

  async #byPassword(asked: NonNullable<AuthBody["auth"]["identity"]["password"]>["user"]): Promise<KnownUser> {
    const user = isDefaultDomain(asked.domain) ? this.directory.user(asked) : null;
    const userId = user?.id ?? null;
    if (!this.#guesses.mayTry(userId)) throw new Fault(429, "Too many wrong passwords; try again in a second.");
    if (this.directory.isPassword(user, asked.password) && user !== null) return user;
    await this.#guesses.hold(userId);
    throw unauthorized();
  }

  /** Returns the project that the scope names. Without a scope it is the user's default project, as in Keystone. */
  #projectOf(scope: AuthScope | undefined, user: KnownUser): string | null {
    if (scope === "unscoped") return null;
    if (scope === undefined) return user.defaultProjectId;
    const { project: asked } = scope;
    if (asked === undefined)
      throw new Fault(401, "Tokens are issued for projects alone, not for domains or the system.");
    const project = isDefaultDomain(asked.domain) ? this.directory.project(asked) : null;
    if (project === null || !user.roles.has(project.id))
      throw new Fault(401, `User ${user.name} has no role in the project, or there is no such project.`);
    return project.id;
  }
}

const unauthorized = (): Fault => new Fault(401, "The request you have made requires authentication.");
