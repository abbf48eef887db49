import { type Kind, url } from "../../../runtime/setting-kinds.ts";

/**
 * One URL for each host of a Postgres URL, which may name several hosts with commas between them
 * (`postgres://user:password@one:5432,two:5432/db?target_session_attrs=read-write`; source: libpq). Null when the text is not such a URL.
 */
export function singleHostUrls(url: string): readonly string[] | null {
  const [, head = "", hosts = "", tail = ""] =
    /^(postgres(?:ql)?:\/\/(?:[^/?#@]*@)?)([^/?#@]*)([/?#].*)?$/.exec(url) ?? [];
  if (head === "") return null;
  const urls = hosts.split(",").map((host) => `${head}${host}${tail}`);
  if (!urls.every((one) => URL.canParse(one))) return null;
  if (urls.length === 1) return urls;
  if (urls.some((one) => new URL(one).hostname === "")) return null;
  // Berth writes on every connection, so only a server that accepts writes is useful.
  const wanted = new URL(urls[0] as string).searchParams.get("target_session_attrs");
  if (wanted !== null && wanted !== "read-write" && wanted !== "primary") return null;
  return urls;
}

/** A setting that names a database: a `url` that may have several hosts. It is never shown, since it may contain a password. */
export const postgresUrl: Kind<string> = {
  ...url("postgres", "postgresql"),
  parse: (given) => (singleHostUrls(given) === null ? undefined : given),
};
