import type { RouteOptions } from "fastify";
import type { Registered, Served } from "./registered.ts";

type OnRoute = (route: RouteOptions) => void;
type Plugin = (scope: HttpScope, options: object, done: (error?: Error) => void) => unknown;
/** A server of Fastify's whose methods are called as an api has called those of its own. */
export type Methods = Readonly<Record<string, (...args: readonly unknown[]) => unknown>>;
/** Makes the calls that were noted. */
export type Replay = (server: Methods) => void;

/** Routes and hooks below a prefix. */
export class HttpScope {
  readonly #prefix: string;
  readonly #registered: Registered;
  readonly #onRoute: OnRoute[];
  readonly #replays: Replay[] = [];
  readonly #plugins: { readonly run: Plugin; readonly prefix: string }[] = [];

  constructor(prefix: string, registered: Registered, onRoute: readonly OnRoute[]) {
    this.#prefix = prefix;
    this.#registered = registered;
    this.#onRoute = [...onRoute];
  }

  addHook(name: string, hook: Served): void {
    if (name === "onRoute") this.#onRoute.push(hook);
    // Simulated apis are killed, never closed.
    else if (name !== "onClose") this.call("addHook", name, hook);
  }

  get = this.#routesOf("GET");
  post = this.#routesOf("POST");
  put = this.#routesOf("PUT");
  delete = this.#routesOf("DELETE");

  register(run: Plugin, { prefix = "" }: { readonly prefix?: string } = {}): void {
    this.#plugins.push({ run, prefix });
  }

  /** Runs the plugins. Like Fastify, it does so when everything else is registered. */
  async load(): Promise<Replay> {
    for (const { run, prefix } of this.#plugins) {
      this.#registered.texts.push("register", prefix);
      const scope = new HttpScope(`${this.#prefix}${prefix}`, this.#registered, this.#onRoute);
      await new Promise<void>((resolve, reject) => {
        const loading = run(scope, {}, (error) => (error === undefined ? resolve() : reject(error)));
        if (loading instanceof Promise) loading.then(resolve, reject);
      });
      const replay = await scope.load();
      const plugin = async (inner: unknown) => replay(inner as Methods);
      this.#replays.push((server) => server.register!(plugin, { prefix }));
      this.#registered.texts.push("registered");
    }
    return (server) => {
      for (const replay of this.#replays) replay(server);
    };
  }

  /** Notes a call of a method of Fastify's server. */
  call(method: string, ...args: readonly unknown[]): void {
    this.#registered.texts.push(method);
    const noted = args.map((arg) => this.#registered.note(arg));
    this.#replays.push((server) => server[method]!(...noted));
  }

  #routesOf(method: string) {
    return (url: string, ...rest: readonly unknown[]) => {
      const full = `${this.#prefix}${url}`;
      const route = { ...(rest.length > 1 && (rest[0] as object)), method, url: full, handler: rest.at(-1) };
      for (const hook of this.#onRoute) hook(route as RouteOptions);
      this.#registered.texts.push("route");
      const noted = this.#registered.noteAll({ ...route, url });
      this.#replays.push((server) => server.route!(noted));
    };
  }
}
