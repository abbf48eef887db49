import { SettingsError } from "../../runtime/settings.ts";
import type { TlsFiles } from "./channel-options.ts";

/** The three TLS settings of a process, which belong together. Throws a SettingsError that names them when only some are given. */
export function tlsFilesOf(given: {
  readonly tlsCa: string | null;
  readonly tlsCert: string | null;
  readonly tlsKey: string | null;
}): TlsFiles | null {
  const { tlsCa: ca, tlsCert: cert, tlsKey: key } = given;
  if (ca !== null && cert !== null && key !== null) return { ca, cert, key };
  if (ca === null && cert === null && key === null) return null;
  throw new SettingsError("TLS needs three files: give all of --tls-ca, --tls-cert and --tls-key, or none of them");
}
