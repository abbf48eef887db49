import { isIP } from "node:net";
import type { NewSecurityGroupRule } from "../../../../core/stores/security-groups.ts";
import { badRequest } from "../../http/fault.ts";

/** The protocols that Neutron knows by name, with their numbers. */
const PROTOCOLS: Readonly<Record<string, number>> = {
  ...{ ah: 51, dccp: 33, egp: 8, esp: 50, gre: 47, icmp: 1, icmpv6: 58, "ipv6-icmp": 58, igmp: 2, ipip: 4 },
  ...{ ospf: 89, pgm: 113, rsvp: 46, sctp: 132, tcp: 6, udp: 17, udplite: 136, vrrp: 112 },
};
const WITH_PORTS = ["dccp", "sctp", "tcp", "udp", "udplite"];
const ICMP = ["icmp", "icmpv6", "ipv6-icmp"];
const PORT_MAX = 65_535;
const ICMP_MAX = 255;

/**
 * Checks a rule as Neutron does, and returns it with one spelling of its protocol. Throws a 400 with Neutron's message.
 *
 * Source: `_validate_security_group_rule` in neutron/db/securitygroups_db.py
 */
export function canonicalRule(rule: NewSecurityGroupRule): NewSecurityGroupRule {
  if (rule.remotePrefix !== null && rule.remoteGroupId !== null)
    throw badRequest("Only remote_ip_prefix or remote_group_id may be provided.");
  if (rule.remotePrefix !== null) checkPrefix(rule.remotePrefix, rule.etherType);
  const protocol = rule.protocol === null ? null : canonicalProtocol(rule.protocol);
  checkPorts(protocol, rule);
  return { ...rule, protocol };
}

function canonicalProtocol(asked: string): string | null {
  const protocol = asked.toLowerCase();
  if (protocol === "any" || protocol === "") return null;
  if (Object.hasOwn(PROTOCOLS, protocol)) return protocol;
  if (/^\d{1,3}$/.test(protocol) && Number(protocol) <= 255) return String(Number(protocol));
  throw badRequest(
    `Security group rule protocol ${asked.slice(0, 40)} not supported. Only protocol values [None, ${Object.keys(PROTOCOLS).join(", ")}] and integer representations [0 to 255] are supported.`,
  );
}

function checkPorts(protocol: string | null, { portMin, portMax }: NewSecurityGroupRule): void {
  if (portMin === null && portMax === null) return;
  if (protocol === null) throw badRequest("Must also specify protocol if port range is given.");
  const name = Object.keys(PROTOCOLS).find((one) => String(PROTOCOLS[one]) === protocol) ?? protocol;
  if (WITH_PORTS.includes(name)) {
    if (portMin === null || portMax === null || portMin > portMax)
      throw badRequest("Invalid range: for TCP/UDP protocols, port_range_min must be <= port_range_max.");
    refuseOutside("port_range_min", portMin, PORT_MAX);
    refuseOutside("port_range_max", portMax, PORT_MAX);
    return;
  }
  if (!ICMP.includes(name)) throw badRequest(`Port range cannot be specified for protocol ${name}.`);
  if (portMin === null)
    throw badRequest(`ICMP code (port-range-max) ${portMax} is provided but ICMP type (port-range-min) is missing.`);
  refuseOutside("type", portMin, ICMP_MAX);
  if (portMax !== null) refuseOutside("code", portMax, ICMP_MAX);
}

function refuseOutside(field: string, value: number, max: number): void {
  if (value < 0 || value > max) throw badRequest(`Invalid value for ${field}: ${value}. It must be from 0 to ${max}.`);
}

function checkPrefix(prefix: string, etherType: NewSecurityGroupRule["etherType"]): void {
  const [address = "", length, ...others] = prefix.split("/");
  const version = isIP(address);
  const bits = version === 6 ? 128 : 32;
  const isLength = length === undefined || (/^\d{1,3}$/.test(length) && Number(length) <= bits);
  if (version === 0 || !isLength || others.length > 0)
    throw badRequest(`Invalid CIDR ${prefix.slice(0, 80)} given as IP prefix.`);
  if (`IPv${version}` !== etherType)
    throw badRequest(`Conflicting value ethertype ${etherType} for CIDR ${prefix.slice(0, 80)}.`);
}
