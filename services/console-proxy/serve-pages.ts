import { open } from "node:fs/promises";
import type { RequestListener, ServerResponse } from "node:http";
import { extname, join } from "node:path";
import { pipeline } from "node:stream/promises";

/** Other files are sent as bytes, which browsers do not run. */
const TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".html": "text/html; charset=utf-8",
  ".ico": "image/x-icon",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".mp3": "audio/mpeg",
  ".oga": "audio/ogg",
  ".png": "image/png",
  ".svg": "image/svg+xml",
  ".ttf": "font/ttf",
  ".txt": "text/plain; charset=utf-8",
  ".woff": "font/woff",
};
/** Each name may have letters, digits and these marks, and does not begin with a dot, so no path leaves the directory. */
const PATH = /^(?:\/[A-Za-z0-9_@-][A-Za-z0-9_.@-]{0,100}){1,10}$/;

/** Serves the files of a directory to browsers: noVNC's pages, with which users see graphical consoles. Links in the directory are followed. */
export function servePages(dir: string): RequestListener {
  return (request, response) => {
    const [path = ""] = (request.url ?? "").split("?");
    if (request.method !== "GET" && request.method !== "HEAD")
      return say(response, 405, "Pages are only read.", { allow: "GET, HEAD" });
    if (!PATH.test(path)) return say(response, 404, NOT_FOUND);
    void sendFile(response, join(dir, path), request.method === "HEAD");
  };
}

const NOT_FOUND = "There is no such page. Consoles are reached at the URL that the Compute API gives.";

/** Never rejects. */
async function sendFile(response: ServerResponse, path: string, isHead: boolean): Promise<void> {
  const file = await open(path).catch(() => null);
  if (file === null) return say(response, 404, NOT_FOUND);
  try {
    const found = await file.stat();
    if (!found.isFile()) return say(response, 404, NOT_FOUND);
    response.writeHead(200, {
      "content-type": TYPES[extname(path)] ?? "application/octet-stream",
      "content-length": found.size,
      // The page's address has a token. The page is asked for again when its files were changed.
      ...{ "cache-control": "no-cache", "referrer-policy": "no-referrer", "x-content-type-options": "nosniff" },
    });
    if (isHead || found.size === 0) response.end();
    else await pipeline(file.createReadStream({ end: found.size - 1, autoClose: false }), response);
  } catch {
    // The browser has gone, or the file cannot be read: the answer ends before its length.
    response.destroy();
  } finally {
    await file.close().catch(() => undefined);
  }
}

function say(response: ServerResponse, status: number, text: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { "content-type": "text/plain", ...headers });
  response.end(`${text}\n`);
}
