import { Type } from "typebox";
import { callerOf, callOf } from "../../http/call.ts";
import { carrierFor, type Http } from "../../http/create-http.ts";
import { badRequest } from "../../http/fault.ts";
import { QueryReader, refuseOtherParameters } from "../../http/query-reader.ts";
import { AnyQuery, NullableString } from "../../http/schema.ts";
import { beginSnapshot, type SnapshotDeps } from "./begin-snapshot.ts";

/** From this microversion on, other parameters than these are refused. */
const STRICT_FROM_MINOR = 75;
const QUERY = { delete_info: 1 };
const DELETED_MAX = 255;

const Name = Type.String({ minLength: 1, maxLength: DELETED_MAX });
const Body = Type.Object(
  {
    snapshot: Type.Object(
      {
        volume_id: Name,
        create_info: Type.Object(
          {
            snapshot_id: Name,
            type: Type.Unsafe<"qcow2">({ type: "string", enum: ["qcow2"] }),
            new_file: Name,
            id: Type.Optional(Name),
          },
          { additionalProperties: false },
        ),
      },
      { additionalProperties: false },
    ),
  },
  { additionalProperties: false },
);
const Answer = Type.Object({ snapshot: Type.Object({ id: NullableString, volumeId: Type.String() }) });
const Params = Type.Object({ id: Type.String() });
const of = (name: string) => ({ rule: `os-assisted-volume-snapshots:${name}` });
const URL = "/os-assisted-volume-snapshots";

/**
 * `/os-assisted-volume-snapshots`: what Cinder's drivers for shared file systems ask for when they make or delete a snapshot of a volume that a server uses. The answer says only that it
 * has begun; Cinder learns from its own API what has become of it.
 *
 * Source: Nova's `AssistedVolumeSnapshotsController`.
 */
export function registerAssistedSnapshotRoutes(http: Http, deps: SnapshotDeps): void {
  http.post(URL, { config: of("create"), schema: { body: Body, response: { 200: Answer } } }, async (request) => {
    const { volume_id: volumeId, create_info: info } = request.body.snapshot;
    const snapshot = { snapshotId: info.snapshot_id, newFile: info.new_file, fileToMerge: "", mergeTarget: "" };
    const context = { carrier: carrierFor(request), askedBy: callerOf(callOf(request)) };
    await beginSnapshot(deps, context, { kind: "snapshot-volume", volumeId, snapshot });
    return { snapshot: { id: info.id ?? null, volumeId } };
  });

  http.delete(
    `${URL}/:id`,
    { config: of("delete"), schema: { params: Params, querystring: AnyQuery } },
    async (request, reply) => {
      const call = callOf(request);
      if (call.minor >= STRICT_FROM_MINOR) refuseOtherParameters(request.query, QUERY, call.minor);
      const info = readDeleteInfo(new QueryReader(request.query).text("delete_info"));
      const { volumeId, fileToMerge, mergeTarget } = info;
      const snapshot = { snapshotId: request.params.id, newFile: "", fileToMerge, mergeTarget };
      const context = { carrier: carrierFor(request), askedBy: callerOf(call) };
      await beginSnapshot(deps, context, { kind: "merge-volume", volumeId, snapshot });
      return reply.code(204).send();
    },
  );
}

/** Reads the JSON in the query's parameter. An absent file is an empty name. */
function readDeleteInfo(text: string | undefined): {
  readonly volumeId: string;
  readonly fileToMerge: string;
  readonly mergeTarget: string;
} {
  if (text === undefined) throw badRequest("'delete_info'");
  let info: unknown;
  try {
    info = JSON.parse(text);
  } catch {
    throw badRequest("The parameter delete_info is not JSON.");
  }
  const fields = (typeof info === "object" && info !== null ? info : {}) as Readonly<Record<string, unknown>>;
  const nameOf = (field: string): string => {
    const value = fields[field] ?? "";
    if (typeof value === "string" && value.length <= DELETED_MAX) return value;
    throw badRequest(`The field ${field} of delete_info is not the name of a file.`);
  };
  if (typeof fields.volume_id !== "string") throw badRequest("'volume_id'");
  if (fields.type !== undefined && fields.type !== "qcow2")
    throw badRequest("The field type of delete_info is not qcow2, which alone is supported.");
  const [fileToMerge, mergeTarget] = [nameOf("file_to_merge"), nameOf("merge_target_file")];
  if (mergeTarget !== "" && fileToMerge === "")
    throw badRequest("The field file_to_merge of delete_info is missing, though there is a merge_target_file.");
  return { volumeId: fields.volume_id, fileToMerge, mergeTarget };
}
