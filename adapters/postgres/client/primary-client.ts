import pg from "pg";
import { singleHostUrls } from "./postgres-url.ts";
import { PrimaryFinder } from "./primary-finder.ts";

/** The connection target of node-pg, which its types do not allow to set. */
interface Target {
  host: string;
  port: number;
}

/** One finder for each URL, so that a connection uses what other connections of this process have learnt about its servers. */
const finders = new Map<string, PrimaryFinder>();

/**
 * A connection to a database whose URL may name several servers. It goes to the one that accepts writes. Losing the connection never ends
 * the process. With one server it is node-pg's own client. A connection does not follow a failover: it is lost, and the next one finds the
 * new primary. A connection to an old primary that is still running is cut when the new one has been found.
 */
export class PrimaryClient extends pg.Client {
  readonly #finder: PrimaryFinder | null;

  /** `addedOptions` are appended to those of the URL or of the environment (PGOPTIONS). Throws on an invalid URL. */
  constructor(config: pg.ClientConfig & { readonly addedOptions?: string }) {
    const urls = singleHostUrls(config.connectionString ?? "");
    if (urls === null)
      throw new Error(
        "this is not the URL of a Postgres database, which looks like postgres://USER:PASSWORD@HOST:5432/NAME",
      );
    super({ ...config, connectionString: urls[0] as string });
    if (config.addedOptions !== undefined) {
      // Node-pg's types omit the parameters that it derived from the URL and the environment.
      const { connectionParameters: made } = this as unknown as { connectionParameters: { options?: string } };
      made.options = made.options ? `${made.options} ${config.addedOptions}` : config.addedOptions;
    }
    // A connection may be lost at any moment: while idle, in the middle of a transaction, or while it is being closed. The running
    // statement rejects, and so does the next one. Without a listener the event itself would end the process, and a pool listens only while
    // a connection is idle.
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
