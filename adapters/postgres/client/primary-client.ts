import pg from "pg";
import { singleHostUrls } from "./postgres-url.ts";
import { PrimaryFinder } from "./primary-finder.ts";

/** What node-pg connects to; its types do not let it be set. */
interface Target {
  host: string;
  port: number;
}

/** What one connection has learnt the next ones of this process need not: by the URL that names the servers. */
const finders = new Map<string, PrimaryFinder>();

/**
 * A connection to a database whose URL may name several servers: it goes to the one that takes writes. Its loss never ends the process. With one
 * server it is node-pg's own client. A connection does not follow a failover: it is lost, and the next one finds the new primary; one
 * to an old primary that lives on is cut when the new one has been found.
 */
export class PrimaryClient extends pg.Client {
  readonly #finder: PrimaryFinder | null;

  /** `addedOptions` come after those of the URL or of the environment (PGOPTIONS). Throws on a URL that is none. */
  constructor(config: pg.ClientConfig & { readonly addedOptions?: string }) {
    const urls = singleHostUrls(config.connectionString ?? "");
    if (urls === null) throw new Error("not the URL of a Postgres database");
    super({ ...config, connectionString: urls[0] as string });
    if (config.addedOptions !== undefined) {
      // Node-pg's types leave out what it made of the URL and the environment.
      const { connectionParameters: made } = this as unknown as { connectionParameters: { options?: string } };
      made.options = made.options ? `${made.options} ${config.addedOptions}` : config.addedOptions;
    }
    // A connection may be lost at any moment: idle, in the middle of a transaction, while it is being closed. The statement under way rejects,
    // and so does the next one; without a listener the event itself would end the process. A pool listens only while a connection is idle.
    this.on("error", () => undefined);
    this.#finder = urls.length === 1 ? null : finderOf(config.connectionString ?? "", urls);
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error | null, client?: pg.Client) => void): void;
  override connect(callback?: (error: Error | null, client?: pg.Client) => void): Promise<pg.Client> | undefined {
    const connected = this.#finder === null ? super.connect() : this.#connectTo(this.#finder);
    if (callback === undefined) return connected;
    connected.then(() => callback(null, this), callback);
    return undefined;
  }

  async #connectTo(finder: PrimaryFinder): Promise<pg.Client> {
    const primary = await finder.find();
    const { hostname, port } = new URL(primary.url);
    const target: Target = { host: hostname.replace(/^\[|\]$/g, ""), port: Number(port || 5_432) };
    Object.assign(this, target);
    const lost = () => finder.distrust(primary);
    this.once("error", () => finder.suspect(primary));
    this.once("end", lost);
    try {
      const connected = await super.connect();
      this.once(
        "end",
        finder.cutWhenReplaced(primary, () => void this.connection.stream.destroy()),
      );
      return connected;
    } catch (error) {
      lost();
      throw error;
    }
  }
}

function finderOf(url: string, urls: readonly string[]): PrimaryFinder {
  const finder = finders.get(url) ?? new PrimaryFinder(urls);
  finders.set(url, finder);
  return finder;
}
