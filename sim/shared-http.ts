import { EventEmitter } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import Fastify, { type FastifyInstance, type FastifyServerOptions } from "fastify";
import { HttpScope, type Methods, type Replay } from "./http-scope.ts";
import { Registered, type Served, type ServedCall } from "./registered.ts";

interface Prepared {
  readonly server: FastifyInstance;
  /** Number of random numbers that Fastify has drawn, to name plugins. Each api draws as many, so a world does not depend on earlier ones of its process. */
  readonly drawn: number;
}

/** The servers of this process, by everything that was registered but the functions. */
const servers = new Map<string, Promise<Prepared>>();
const { getDefaultJsonParser } = Fastify();

/**
 * An api's HTTP server whose routes Fastify prepares only once in a process: that takes a millisecond and much memory, and worlds start apis very
 * often. It notes what the api registers. All apis that register the same share a server of Fastify's, which calls the functions of the api that a call is for.
 * So that server refers to no api, and to no world. This one never listens, and has only what apis use in the simulator. A fact about a
 * route may have functions only if they are the same for every api.
 */
export function sharedHttp(options: FastifyServerOptions): FastifyInstance {
  return new SharedHttp(options) as unknown as FastifyInstance;
}

class SharedHttp extends HttpScope {
  /** Nothing ever connects to it. */
  readonly server = new EventEmitter();
  readonly getDefaultJsonParser = getDefaultJsonParser;
  readonly #options: FastifyServerOptions;
  readonly #registered: Registered;
  #shared: FastifyInstance | null = null;

  constructor({ schemaController, ...options }: FastifyServerOptions) {
    const registered = new Registered();
    super("", registered, []);
    this.#registered = registered;
    this.#options = { ...registered.noteAll(options), ...(schemaController && { schemaController }) };
  }

  withTypeProvider(): this {
    return this;
  }

  decorate(name: string, value: unknown): void {
    Object.assign(this, { [name]: value });
  }

  decorateRequest = (name: string, value: unknown) => this.call("decorateRequest", name, value);
  setErrorHandler = (handler: Served) => this.call("setErrorHandler", handler);
  setNotFoundHandler = (handler: Served) => this.call("setNotFoundHandler", handler);
  removeContentTypeParser = (type: string) => this.call("removeContentTypeParser", type);

  addContentTypeParser(type: string, options: object, parse: Served): void {
    this.call("addContentTypeParser", type, options, parse);
  }

  async ready(): Promise<void> {
    const replay = await this.load();
    // Everything else that happens now comes first, so that nothing else runs while the server is prepared.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    const key = this.#registered.texts.join("\n");
    const known = servers.get(key) ?? prepared(this.#options, replay);
    servers.set(key, known);
    const { server, drawn } = await known;
    this.#shared = server;
    for (let left = drawn; left > 0; left -= 1) Math.random();
  }

  routing(call: IncomingMessage, answer: ServerResponse): void {
    (call as ServedCall).served = this.#registered.functions;
    this.#shared!.routing(call, answer);
  }
}

async function prepared(options: FastifyServerOptions, replay: Replay): Promise<Prepared> {
  const { random } = Math;
  let drawn = 0;
  Math.random = () => {
    drawn += 1;
    return 0;
  };
  try {
    const server = Fastify(options);
    replay(server as unknown as Methods);
    await server.ready();
    return { server, drawn };
  } finally {
    Math.random = random;
  }
}
