import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import type { Http } from "../http/create-http.ts";
import { Fault } from "../http/fault.ts";

/** `npm run dashboard` writes the page there; the npm package has it. */
const BUILT = new URL("../../../dashboard/built/", import.meta.url);
const FILES: Readonly<Record<string, { readonly file: string; readonly type: string }>> = {
  "/dashboard": { file: "index.html", type: "text/html; charset=utf-8" },
  "/dashboard/app.js": { file: "app.js", type: "text/javascript; charset=utf-8" },
  "/dashboard/icon.svg": { file: "icon.svg", type: "image/svg+xml" },
  "/dashboard/app.css": { file: "app.css", type: "text/css; charset=utf-8" },
};

/** The page may load and ask its own origin alone, and no page may frame it. */
const POLICY = [
  "default-src 'none'",
  ...["script-src", "style-src", "connect-src", "img-src"].map((what) => `${what} 'self'`),
  ...["base-uri", "form-action", "frame-ancestors"].map((what) => `${what} 'none'`),
].join("; ");
const HEADERS = {
  "content-security-policy": POLICY,
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-cache",
};

/**
 * Registers `/dashboard`: only the page, which contains nothing of the cloud. It requests its data from the operators' API, with the token
 * that its user enters.
 */
export function registerDashboardPage(http: Http): void {
  for (const [path, { file, type }] of Object.entries(FILES)) {
    http.get(path, async (request, reply) => {
      const text = await readBuilt(file);
      const tag = `"${createHash("sha256").update(text).digest("base64url").slice(0, 22)}"`;
      reply.headers({ ...HEADERS, etag: tag });
      if (request.headers["if-none-match"] === tag) return reply.code(304).send();
      return reply.type(type).send(text);
    });
  }
}

async function readBuilt(file: string): Promise<string> {
  try {
    return await readFile(new URL(file, BUILT), "utf8");
  } catch (error) {
    const message = "The dashboard has not been built here: run `npm run dashboard` in the clone.";
    throw new Fault(503, message, { cause: error });
  }
}
