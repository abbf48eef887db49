/**
 * Which agent the certificate of a connection stands for, and which hosts that agent may carry. In the certificate each is a URI among the
 * subject's alternative names: `berth:agent:<id>` and `berth:host:<pattern>`, where `*` stands for any characters.
 */
export interface AgentPermit {
  readonly agentIds: readonly string[];
  readonly hosts: readonly string[];
}

const AGENT = "berth:agent:";
const HOST = "berth:host:";
/** How many host names an error message lists. The rest are counted. */
const NAMED_MAX = 5;

/** The URIs of a certificate for this agent; the inverse of `permitOfUris`. */
export function urisOfPermit(permit: AgentPermit): readonly string[] {
  return [...permit.agentIds.map((id) => `${AGENT}${id}`), ...permit.hosts.map((pattern) => `${HOST}${pattern}`)];
}

/** Reads the permit from the URIs of a certificate and ignores other URIs. */
export function permitOfUris(uris: readonly string[]): AgentPermit {
  const after = (prefix: string) => uris.filter((uri) => uri.startsWith(prefix)).map((uri) => uri.slice(prefix.length));
  return { agentIds: after(AGENT), hosts: after(HOST) };
}

/** Whether the certificate names neither an agent nor a host, like those that `berth certs` once made for a whole cell. */
export function isCellWide(permit: AgentPermit): boolean {
  return permit.agentIds.length === 0 && permit.hosts.length === 0;
}

/** Why an agent with this certificate may not send this hello, or null when it may. The reason names the agent and hosts that the certificate allows. */
export function helloRefusal(
  permit: AgentPermit,
  hello: { readonly agentId: string; readonly hosts: readonly string[] },
): string | null {
  if (isCellWide(permit))
    return "the certificate names no agent: issue one for this agent and its hosts with `berth certs --agent-hosts`";
  if (!permit.agentIds.includes(hello.agentId)) {
    return `the certificate is for agent ${permit.agentIds.join(", ") || "(none)"}, not for agent ${hello.agentId}: correct BERTH_AGENT_ID, or give the agent its own certificate`;
  }
  const others = hello.hosts.filter((host) => !permit.hosts.some((pattern) => matchesPattern(host, pattern)));
  if (others.length === 0) return null;
  const more = others.length > NAMED_MAX ? ` and ${others.length - NAMED_MAX} more` : "";
  return `the certificate of agent ${hello.agentId} allows the hosts ${permit.hosts.join(", ") || "(none)"}, and not ${others.slice(0, NAMED_MAX).join(", ")}${more}: correct the agent's hosts, or issue a certificate that names them`;
}

/** Whether the name matches the pattern, in which each `*` stands for any characters. Cost: name × pattern at worst. */
export function matchesPattern(name: string, pattern: string): boolean {
  let at = 0;
  let next = 0;
  // `afterStar` is the position after the latest `*` in the pattern. `starEnd` is the end of the characters that this `*` covers so far.
  let afterStar = -1;
  let starEnd = 0;
  while (at < name.length) {
    if (pattern[next] === "*") {
      next += 1;
      afterStar = next;
      starEnd = at;
    } else if (pattern[next] === name[at]) {
      next += 1;
      at += 1;
    } else if (afterStar >= 0) {
      starEnd += 1;
      at = starEnd;
      next = afterStar;
    } else return false;
  }
  while (pattern[next] === "*") next += 1;
  return next === pattern.length;
}
