import type { KnownCall } from "../../http/call.ts";
import { invalidField } from "../../http/fault.ts";
import type { ActionBody } from "./action-body.ts";

/**
 * Refuses a body that the microversion does not allow, whatever server it is for: as in Nova, the fields are checked before the server is looked for, so that a client learns of its
 * mistake also while the server is busy.
 */
export type CheckBody = (body: ActionBody, call: Pick<KnownCall, "minor">) => void;

/** Microversions from which (and up to which) a field may be given. */
const MIGRATE_HOST_FROM = 56;
const BLOCK_MIGRATION_AUTO_FROM = 25;
export const FORCE_LIVE_FROM = 30;
const FORCE_EVACUATE_FROM = 29;
const FORCE_UNTIL = 67;
const SHARED_STORAGE_UNTIL = 13;
const UNSHELVE_ZONE_FROM = 77;
export const UNSHELVE_HOST_FROM = 91;

/** The reference to the flavor of a resize, which may be a number. */
export function readFlavorRef(body: ActionBody): string {
  const given = body.raw("flavorRef");
  return typeof given === "number" ? String(given) : (body.text("flavorRef") ?? "");
}

export const checkResize: CheckBody = (body) => {
  body.refuseOthers("flavorRef", "OS-DCF:diskConfig").require("flavorRef");
  readFlavorRef(body);
  const diskConfig = body.raw("OS-DCF:diskConfig");
  if (diskConfig !== undefined && diskConfig !== "AUTO" && diskConfig !== "MANUAL")
    throw invalidField("OS-DCF:diskConfig", diskConfig, "It is not one of ['AUTO', 'MANUAL'].");
};

/** Before this microversion a host could not be named, and Nova ignored the field. */
export const mayNameMigrateHost = ({ minor }: Pick<KnownCall, "minor">): boolean => minor >= MIGRATE_HOST_FROM;

export const checkMigrate: CheckBody = (body, call) => {
  if (mayNameMigrateHost(call)) body.refuseOthers("host").host();
};

export const mayForceLive = ({ minor }: Pick<KnownCall, "minor">): boolean =>
  minor >= FORCE_LIVE_FROM && minor <= FORCE_UNTIL;

export const checkLiveMigrate: CheckBody = (body, call) => {
  const fields = ["host", "block_migration"];
  const hasOverCommit = call.minor < BLOCK_MIGRATION_AUTO_FROM;
  const mayForce = mayForceLive(call);
  body.refuseOthers(...fields, ...(hasOverCommit ? ["disk_over_commit"] : []), ...(mayForce ? ["force"] : []));
  body.require(...fields, ...(hasOverCommit ? ["disk_over_commit"] : []));
  if (hasOverCommit || body.raw("block_migration") !== "auto") body.flag("block_migration");
  if (hasOverCommit) body.flag("disk_over_commit");
  body.host();
  if (mayForce) body.flag("force");
};

export const mayForceEvacuate = ({ minor }: Pick<KnownCall, "minor">): boolean =>
  minor >= FORCE_EVACUATE_FROM && minor <= FORCE_UNTIL;

/** Up to this microversion the call must say whether both hosts see the server's disk. */
export const maySayShared = ({ minor }: Pick<KnownCall, "minor">): boolean => minor <= SHARED_STORAGE_UNTIL;

export const checkEvacuate: CheckBody = (body, call) => {
  if (body.isNull) throw invalidField("evacuate", null, "It is not of type 'object'.");
  const shares = maySayShared(call);
  const mayForce = mayForceEvacuate(call);
  body.refuseOthers("host", "adminPass", ...(shares ? ["onSharedStorage"] : []), ...(mayForce ? ["force"] : []));
  if (shares) body.require("onSharedStorage").flag("onSharedStorage");
  body.password();
  body.host();
  if (mayForce) body.flag("force");
};

/** Whether the body names a zone, or a host. Other bodies are ignored, as by Nova, in the microversions without these fields. */
export const namesUnshelvePlace: (...of: Parameters<CheckBody>) => boolean = (body, { minor }) =>
  minor >= UNSHELVE_ZONE_FROM && !body.isNull;

export const checkUnshelve: CheckBody = (body, call) => {
  if (!namesUnshelvePlace(body, call)) return;
  const mayName = call.minor >= UNSHELVE_HOST_FROM;
  body.refuseOthers("availability_zone", ...(mayName ? ["host"] : []));
  if (!mayName) body.require("availability_zone");
  body.host();
  if (!(mayName && body.raw("availability_zone") === null)) body.text("availability_zone");
};
