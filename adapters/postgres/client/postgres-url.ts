import { type Kind, url } from "../../../runtime/setting-kinds.ts";

/**
 * A URL for each host of a Postgres URL, which may name several with commas between them
 * (`postgres://user:password@one:5432,two:5432/db?target_session_attrs=read-write`; source: libpq). Null: it is no such URL.
 */
export function singleHostUrls(url: string): readonly string[] | null {
  const [, head = "", hosts = "", tail = ""] =
    /^(postgres(?:ql)?:\/\/(?:[^/?#@]*@)?)([^/?#@]*)([/?#].*)?$/.exec(url) ?? [];
  if (head === "") return null;
  const urls = hosts.split(",").map((host) => `${head}${host}${tail}`);
  if (!urls.every((one) => URL.canParse(one))) return null;
  if (urls.length === 1) return urls;
  if (urls.some((one) => new URL(one).hostname === "")) return null;
  // Berth writes wherever it connects, so only a server that takes writes will ever do.
  const wanted = new URL(urls[0] as string).searchParams.get("target_session_attrs");
  if (wanted !== null && wanted !== "read-write" && wanted !== "primary") return null;
  return urls;
}

/** A setting that names a database: a `url` whose host may be several. Never shown, since it may hold a password. */
export const postgresUrl: Kind<string> = {
  ...url("postgres", "postgresql"),
  parse: (given) => (singleHostUrls(given) === null ? undefined : given),
};
