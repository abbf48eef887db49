import { X509Certificate } from "node:crypto";
import { type AgentPermit, permitOfUris } from "../../core/agent/agent-permit.ts";

/** One name of the list, up to the next comma that is not inside quotes. */
const NAME = /(?:[^",]|"(?:[^"\\]|\\.)*")+/g;

/**
 * The permit that an agent's certificate (DER) grants. Without a certificate it permits nothing; the TLS handshake should have rejected
 * such an agent already.
 */
export function permitOfCertificate(der: Uint8Array | undefined): AgentPermit {
  const names = der === undefined ? undefined : new X509Certificate(der).subjectAltName;
  return permitOfUris(urisOfNames(names ?? ""));
}

/**
 * The URIs of a list of alternative names as Node prints it: `DNS:a, URI:b`. Node quotes a value that holds a comma, a quote or another
 * character that could make one name look like two. No agent or host has such a name, so quoted values are left out.
 */
export function urisOfNames(names: string): readonly string[] {
  return [...names.matchAll(NAME)]
    .map(([name]) => name.trim())
    .filter((name) => name.startsWith("URI:") && !name.startsWith('URI:"'))
    .map((name) => name.slice("URI:".length));
}
