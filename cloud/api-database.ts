import { existsSync } from "node:fs";
import { join } from "node:path";
import { ensureDatabase, withClient } from "../adapters/postgres/client/databases.ts";
import { postgresUrl, singleHostUrls } from "../adapters/postgres/client/postgres-url.ts";
import { type EmbeddedPostgres, startEmbedded } from "../adapters/postgres/embedded/embedded.ts";
import { EmbeddedError, settingsErrorIfInUse } from "../adapters/postgres/embedded/embedded-error.ts";
import { urlsOfEmbedded } from "../adapters/postgres/embedded/embedded-running.ts";
import { directory } from "../runtime/setting-kinds.ts";
import { optional, SettingsError, setting } from "../runtime/settings.ts";

/** Settings that say where the API database is. Commands that use it spread them into their declaration. */
export const apiDatabaseSettings = {
  databaseUrl: optional(postgresUrl, {
    about: "the API database; by default the embedded Postgres",
  }),
  dataDir: setting(directory, { about: "data directory of the embedded Postgres", default: ".berth" }),
};

/** The API database, opened for the run of a command. */
export interface ApiDatabase {
  readonly url: string;
  /** Returns the URL of a cell's database, which is created when missing. Null when the user provides the databases. */
  readonly cellUrl: ((cell: string) => Promise<string>) | null;
  close(): Promise<void>;
}

/**
 * Opens the API database that the settings name, or starts an embedded one, which `close` stops. The embedded one is in
 * `<data-dir>/postgres`, or in a temporary directory when the data directory is null. With `beside`, a database that another process has
 * started (`berth dev`) is used if there is one, and is left running. With `serverPerCell`, `cellUrl` starts another temporary server for
 * each cell.
 */
export async function openApiDatabase(
  settings: { readonly databaseUrl: string | null; readonly dataDir: string | null },
  options: { readonly beside?: boolean; readonly serverPerCell?: boolean } = {},
): Promise<ApiDatabase> {
  if (settings.databaseUrl !== null) {
    await requireReachable(settings.databaseUrl);
    return { url: settings.databaseUrl, cellUrl: null, close: async () => undefined };
  }
  if (options.beside === true && settings.dataDir !== null) requireDataDir(settings.dataDir);
  if (settings.dataDir === null && options.serverPerCell === true) return openServers();
  const server =
    settings.dataDir === null
      ? await startEmbedded()
      : await startOrJoin(join(settings.dataDir, "postgres"), options.beside ?? false);
  return {
    url: await databaseOf(server, "berth_api"),
    cellUrl: (cell) => databaseOf(server, `berth_cell_${cell}`),
    close: () => server.stop(),
  };
}

/** Connects once, so that the error names the setting: a bare "connection refused" does not say which of several servers it was. */
async function requireReachable(url: string): Promise<void> {
  try {
    await withClient(url, (client) => client.query("select"));
  } catch (error) {
    const urls = (singleHostUrls(url) ?? []).map((one) => new URL(one));
    const place = `${urls.map(({ host }) => host).join(",")}${urls[0]?.pathname ?? ""}`;
    const { message, code } = error as { readonly message?: string; readonly code?: string };
    throw new SettingsError(
      `BERTH_DATABASE_URL (--database-url) names ${place}, which cannot be used: ${message || code}. ${adviceFor(code)}`,
    );
  }
}

/** What the operator can do, by the code of the error. The server itself answers with five characters. */
function adviceFor(code: string | undefined): string {
  if (code === "3D000") return "Create that database (`createdb`, or `create database` in SQL), or name another";
  if (code?.startsWith("28")) return "Check the user and the password";
  return "Start that Postgres, or name another";
}

/** A command that uses the database of another process must not create an empty one because a directory's name is mistyped. */
function requireDataDir(dataDir: string): void {
  if (existsSync(join(dataDir, "postgres"))) return;
  throw new SettingsError(
    `BERTH_DATA_DIR (--data-dir) is ${JSON.stringify(dataDir)}, which contains no database of Berth: name the directory that \`berth dev\` uses, or the API database with BERTH_DATABASE_URL (--database-url)`,
  );
}

/**
 * Starts a temporary server for the API database and one for each cell, as clouds have them. A follower of a cell reads its server's whole
 * log, so on a shared server each cell's view would cost as much as all of them.
 */
async function openServers(): Promise<ApiDatabase> {
  const starts = new Map<string, Promise<EmbeddedPostgres>>();
  const open = async (name: string): Promise<string> => {
    const start = starts.get(name) ?? startEmbedded();
    starts.set(name, start);
    return databaseOf(await start, name);
  };
  // A server that failed to start has nothing to stop, and its error has been reported.
  const stopped = (start: Promise<EmbeddedPostgres>) =>
    start.then(
      (server) => server.stop(),
      () => undefined,
    );
  const close = async (): Promise<void> => {
    await Promise.all([...starts.values()].map(stopped));
  };
  try {
    return { url: await open("berth_api"), cellUrl: (cell) => open(`berth_cell_${cell}`), close };
  } catch (error) {
    await close();
    throw error;
  }
}

type Server = Pick<EmbeddedPostgres, "url" | "localUrl" | "stop">;

async function databaseOf(server: Server, name: string): Promise<string> {
  await ensureDatabase(server.url("postgres"), name);
  return server.localUrl(name);
}

async function startOrJoin(dataDir: string, mayJoin: boolean): Promise<Server> {
  try {
    return await startEmbedded({ dataDir });
  } catch (error) {
    const urls = mayJoin && error instanceof EmbeddedError && error.code === "in-use" ? urlsOfEmbedded(dataDir) : null;
    if (urls === null) throw settingsErrorIfInUse(error);
    return { ...urls, stop: async () => undefined };
  }
}

/** Returns the URL of a database on the same server as the user's API database, named after the API database and the cell. */
export async function cellUrlBeside(apiUrl: string, cell: string): Promise<string> {
  const url = new URL(apiUrl);
  const name = `${url.pathname.slice(1) || "berth"}_cell_${cell}`;
  await ensureDatabase(apiUrl, name);
  url.pathname = `/${name}`;
  return url.href;
}
