import { Readable } from "node:stream";
import { Type } from "typebox";
import type { ImageDirectory } from "../../../adapters/images/image-directory.ts";
import { IdleLimit } from "../../../runtime/idle-limit.ts";
import { callOf } from "../http/call.ts";
import type { Http } from "../http/create-http.ts";
import { conflict, Fault } from "../http/fault.ts";
import { findImage, findOwn, type ImageDeps } from "./change-images.ts";
import { uploadImage } from "./upload-image.ts";

export interface ImageDataOptions {
  readonly bytesMax: number;
  /** An upload or a download of which no byte has moved for so long is broken off. */
  readonly idleMs: number;
}

const IdParams = Type.Object({ id: Type.String() });
const NO_STORE =
  "This cloud stores no data of images: its operator can start the api with --images-path, or put the file into the hosts' directories of images.";

/**
 * Registers `PUT` and `GET /v2/images/{id}/file`, which store and return the bits of an image. `files` is null for an api without a directory
 * of images.
 *
 * Source: Glance's api-ref v2, "Image data".
 */
export function registerImageDataRoutes(
  http: Http,
  deps: ImageDeps & { readonly files: ImageDirectory | null },
  { bytesMax, idleMs }: ImageDataOptions,
): void {
  const { files, clock } = deps;
  http.register((scope, _options, done) => {
    scope.addContentTypeParser("application/octet-stream", (_request, bits, parsed) => parsed(null, bits));

    scope.put<{ Params: { id: string }; Body: unknown }>(
      "/v2/images/:id/file",
      { config: { streams: true }, schema: { params: IdParams } },
      async (request, reply) => {
        const { identity } = callOf(request);
        const { id } = await findOwn(deps.store, identity, request.params.id);
        if (files === null) throw conflict(NO_STORE);
        if (!(request.body instanceof Readable))
          throw new Fault(415, "Send the data with the Content-Type application/octet-stream.");
        const bits = new IdleLimit(idleMs, clock);
        // Whoever reads the bits learns why they broke off. An upload that is refused has no reader.
        bits.on("error", () => {});
        request.body.on("error", (error) => bits.destroy(error)).pipe(bits);
        // A connection that closes in the middle of a body ends the stream without an error.
        request.body.once("close", () => request.raw.complete || bits.destroy(new Error("the connection was closed")));
        try {
          await uploadImage({ ...deps, files }, identity, { id, bits, bytesMax });
        } catch (error) {
          // The rest of the body is not awaited.
          reply.header("connection", "close");
          throw error;
        } finally {
          bits.destroy();
        }
        return reply.code(204).send();
      },
    );

    scope.get<{ Params: { id: string } }>(
      "/v2/images/:id/file",
      { config: { streams: true }, schema: { params: IdParams } },
      async (request, reply) => {
        const { id, data } = await findImage(deps.store, callOf(request).identity, request.params.id);
        if (files === null) throw conflict(NO_STORE);
        const stored = data === undefined || data === "awaited" ? null : data;
        const found = data === "awaited" ? null : await files.read(id, stored?.sha512 ?? null);
        if (found === null) return reply.code(204).send();
        if (stored !== null) reply.header("content-md5", stored.md5);
        reply.header("content-type", "application/octet-stream").header("content-length", found.bytes);
        const limit = new IdleLimit(idleMs, clock);
        found.bits.on("error", (error) => limit.destroy(error));
        limit.on("close", () => found.bits.destroy());
        return reply.send(found.bits.pipe(limit));
      },
    );
    done();
  });
}
