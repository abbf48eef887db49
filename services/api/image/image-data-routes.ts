import { Readable } from "node:stream";
import { Type } from "typebox";
import type { ImageDirectory } from "../../../adapters/images/image-directory.ts";
import { callOf } from "../http/call.ts";
import type { Http } from "../http/create-http.ts";
import { conflict, Fault, unavailable } from "../http/fault.ts";
import { findImage, findOwn, type ImageDeps } from "./change-images.ts";
import { ImageStreams } from "./image-streams.ts";
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
  const { files } = deps;
  const streams = new ImageStreams(idleMs, deps.clock);
  // The server waits for its open requests before it ends, and a stream of many gigabytes would let it wait for as long as its bytes move.
  http.addHook("preClose", (done) => {
    streams.close();
    done();
  });
  http.register((scope, _options, done) => {
    scope.addContentTypeParser("application/octet-stream", (_request, bits, parsed) => parsed(null, bits));

    scope.put<{ Params: { id: string }; Body: unknown }>(
      "/v2/images/:id/file",
      { config: { streams: true }, schema: { params: IdParams } },
      async (request, reply) => {
        const { identity } = callOf(request);
        // The rest of the body of an upload that is refused or fails is not awaited.
        reply.header("connection", "close");
        const { id } = await findOwn(deps.store, identity, request.params.id);
        if (files === null) throw conflict(NO_STORE);
        if (!(request.body instanceof Readable))
          throw new Fault(415, "Send the data with the Content-Type application/octet-stream.");
        if (Number(request.headers["content-length"] ?? 0) > bytesMax)
          throw new Fault(413, `The data of the image were not saved: there are more than ${bytesMax} bytes.`);
        const bits = streams.upload(id, identity.projectId);
        // The reader of the bits gets this error, too. An upload that is refused has no reader, and the error must not end the process.
        bits.on("error", () => {});
        request.body.on("error", (error) => bits.destroy(error)).pipe(bits);
        // A connection that closes in the middle of a body ends the stream without an error.
        request.body.once("close", () => request.raw.complete || bits.destroy(new Error("the connection was closed")));
        try {
          await uploadImage({ ...deps, files }, identity, { id, bits, bytesMax });
        } catch (error) {
          if (streams.isClosed) throw unavailable("The api is being stopped. Send the data again.", error);
          throw error;
        } finally {
          bits.destroy();
        }
        reply.removeHeader("connection");
        return reply.code(204).send();
      },
    );

    scope.get<{ Params: { id: string } }>(
      "/v2/images/:id/file",
      // As in Glance, there is no HEAD: it would open the file and read it to its end.
      { config: { streams: true }, schema: { params: IdParams }, exposeHeadRoute: false },
      async (request, reply) => {
        const { id, data } = await findImage(deps.store, callOf(request).identity, request.params.id);
        if (files === null) throw conflict(NO_STORE);
        const stored = data === undefined || data === "awaited" ? null : data;
        const found = data === "awaited" ? null : await files.read(id, stored?.sha512 ?? null);
        if (found === null) return reply.code(204).send();
        if (stored !== null) reply.header("content-md5", stored.md5);
        reply.header("content-type", "application/octet-stream").header("content-length", found.bytes);
        const limit = streams.download();
        found.bits.on("error", (error) => limit.destroy(error));
        limit.on("close", () => found.bits.destroy());
        return reply.send(found.bits.pipe(limit));
      },
    );
    done();
  });
}
