import { isIP } from "node:net";
import type { NewSecurityGroupRule, SecurityGroup } from "../../../../core/stores/security-groups.ts";
import { badRequest } from "../../http/fault.ts";

/** The fields of a rule in a body. Only the ids have been checked, as in Nova's schema. */
export interface AskedRule {
  readonly ip_protocol?: unknown;
  readonly from_port?: unknown;
  readonly to_port?: unknown;
  readonly cidr?: unknown;
}

const PORT_MAX = 65_535;
const ICMP_MAX = 255;
const EVERYWHERE = "0.0.0.0/0";

/**
 * Reads a rule that lets traffic in from a group or from a prefix. Throws a 400 with Nova's message.
 *
 * Source: `_new_ingress_rule` in nova/network/security_group_api.py
 */
export function readRule(
  asked: AskedRule,
  group: Pick<SecurityGroup, "id" | "projectId">,
  remoteGroupId: string | null,
): NewSecurityGroupRule {
  const remotePrefix = remoteGroupId === null ? readPrefix(asked.cidr) : null;
  const traffic = readTraffic(asked, remoteGroupId !== null);
  if (traffic === null && remoteGroupId === null) throw badRequest("Not enough parameters to build a valid rule.");
  const { protocol = null, from = null, to = null } = traffic ?? {};
  return {
    ...{ groupId: group.id, projectId: group.projectId, direction: "ingress", protocol, remotePrefix, remoteGroupId },
    etherType: remotePrefix !== null && isIP(remotePrefix.split("/", 1)[0] ?? "") === 6 ? "IPv6" : "IPv4",
    // -1 stands for all types and codes of ICMP.
    ...{ portMin: from === -1 ? null : from, portMax: to === -1 ? null : to, description: "" },
  };
}

interface Traffic {
  readonly protocol: string;
  readonly from: number;
  readonly to: number;
}

/** Returns null where the protocol or a port is missing. From a group, all ports of a protocol are let in then. */
function readTraffic({ ip_protocol, from_port, to_port }: AskedRule, isFromGroup: boolean): Traffic | null {
  const protocol = ip_protocol == null || ip_protocol === "" ? null : String(ip_protocol);
  if (protocol === null) return null;
  const upper = protocol.toUpperCase();
  let [from, to] = [from_port ?? null, to_port ?? null];
  if (isFromGroup && from === null && to === null) {
    if (upper === "ICMP") [from, to] = [-1, -1];
    if (upper === "TCP" || upper === "UDP") [from, to] = [1, PORT_MAX];
  }
  if (from === null || to === null) return null;
  const ports = { from: wholeNumber(from, upper), to: wholeNumber(to, upper) };
  if (!["TCP", "UDP", "ICMP"].includes(upper)) throw badRequest(`Invalid IP protocol ${protocol.slice(0, 40)}.`);
  checkPorts(upper, ports);
  return { protocol: protocol.toLowerCase(), ...ports };
}

function wholeNumber(value: unknown, protocol: string): number {
  const text = typeof value === "number" || typeof value === "string" ? String(value).trim() : "";
  if (/^[+-]?\d{1,9}$/.test(text)) return Number(text);
  throw badRequest(
    protocol === "ICMP"
      ? "Invalid input received: Type and Code must be integers for ICMP protocol type"
      : "Invalid input received: To and From ports must be integers",
  );
}

function checkPorts(protocol: string, { from, to }: { readonly from: number; readonly to: number }): void {
  const refused = (why: string) => badRequest(`Invalid port range ${from}:${to}. ${why}`);
  if (protocol === "ICMP") {
    if (from < -1 || from > ICMP_MAX || to < -1 || to > ICMP_MAX)
      throw refused("For ICMP, the type:code must be valid");
    return;
  }
  if (from > to) throw refused("Former value cannot be greater than the later");
  if (from < 1 || to > PORT_MAX) throw refused(`Valid ${protocol} ports should be between 1-65535`);
}

/** Without a prefix, traffic comes from everywhere. */
function readPrefix(asked: unknown): string {
  if (asked == null || asked === "") return EVERYWHERE;
  const refused = () => badRequest(`${String(asked).slice(0, 80)} is not a valid IP network.`);
  if (typeof asked !== "string") throw refused();
  const prefix = decoded(asked);
  const [address = "", length = "", ...others] = prefix.split("/");
  const version = isIP(address);
  const isValid = version !== 0 && /^\d{1,3}$/.test(length) && Number(length) <= (version === 6 ? 128 : 32);
  if (!isValid || others.length > 0) throw refused();
  if (Number(length) === 0 && address !== "0.0.0.0" && address !== "::")
    throw badRequest(`Bad prefix for network in cidr ${prefix}`);
  return prefix;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
