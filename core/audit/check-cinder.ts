import type { Violation } from "./violation.ts";

/** An attachment of Cinder's that names a server, or else a host alone. */
export interface AuditedAttachment {
  readonly id: string;
  readonly volumeId: string;
  /** Empty for one that no server has. */
  readonly serverUuid: string;
}

/** A server that has volumes of Cinder, or that one of Cinder's attachments names. Those that have one of the `unnamedVolumes` are among them. */
export interface AuditedHolder {
  readonly cell: string;
  /** Nothing is under way with it, and nothing has been for a while. */
  readonly isAtRest: boolean;
  /** The volumes that it has. */
  readonly volumes: readonly string[];
  /** Volumes of which it has one or the other: a replacement is under way or was broken off, which another check names. */
  readonly inDoubt: readonly string[];
}

/** Cinder's attachments and volumes, and what servers have. */
export interface CinderFacts {
  readonly attachments: readonly AuditedAttachment[];
  /** The volumes that Cinder shows as those of a server, or of one that is about to get or lose them, each with its status. */
  readonly held: ReadonlyMap<string, string>;
  readonly servers: ReadonlyMap<string, AuditedHolder>;
  /** The volumes that the API database gives to some server, wherever that one is. */
  readonly named: ReadonlySet<string>;
  /** Pairs, by `pairKey`, that apis are at work on, and pairs of servers that no cell has yet. */
  readonly underWay: ReadonlySet<string>;
  /** Whether all cells were read. If not, a server that was not found may be in one of the others. */
  readonly isEveryCellRead: boolean;
  /** Whether other clouds use the same Cinder, too, so that attachments of servers that nobody here knows are theirs. */
  readonly isShared: boolean;
}

/** The statuses of volumes that servers have, or are about to get or lose. */
export const HELD_STATUSES = ["in-use", "reserved", "attaching", "detaching"] as const;

export const pairKey = (volumeId: string, serverUuid: string): string => `${volumeId} ${serverUuid}`;

const LAW = "volumes";
/** The first microversion of Cinder with attachments that can be deleted. */
const ATTACHMENT_COMMAND = "openstack --os-volume-api-version 3.27 volume attachment";

/**
 * Whether Cinder and the servers agree on who has which volume. Each finding says what an operator can do. Servers with something under way are left out, and so is
 * what apis are at work on.
 */
export function checkCinder(facts: CinderFacts): Violation[] {
  const { servers, attachments, isEveryCellRead, isShared } = facts;
  const pairs = new Set(attachments.map(({ volumeId, serverUuid }) => pairKey(volumeId, serverUuid)));
  const lacking = [...servers].flatMap(([uuid, holder]) =>
    holder.isAtRest
      ? holder.volumes
          .filter((id) => !pairs.has(pairKey(id, uuid)))
          .map((id) => withoutAttachment(uuid, id, holder, facts))
      : [],
  );
  const settled = attachments.filter(
    ({ volumeId, serverUuid }) => serverUuid !== "" && !facts.underWay.has(pairKey(volumeId, serverUuid)),
  );
  const left = settled.flatMap((one) => {
    const holder = servers.get(one.serverUuid);
    if (holder === undefined) return isEveryCellRead && !isShared ? [ofNobody(one)] : [];
    return holder.isAtRest && ![...holder.volumes, ...holder.inDoubt].includes(one.volumeId)
      ? [ofAnother(one, holder)]
      : [];
  });
  // A volume may be that of another cloud's server whose attachment was lost: its guest goes on, and freeing the volume would give it to a second one.
  return [...lacking, ...left, ...(isEveryCellRead && !isShared ? withoutHolder(facts) : [])];
}

/** Such a volume is free for everybody in Cinder's eyes, although a guest may write to it. */
function withoutAttachment(
  uuid: string,
  volumeId: string,
  { cell }: AuditedHolder,
  { attachments, held }: CinderFacts,
): Violation {
  const others = attachments.filter((one) => one.volumeId === volumeId && one.serverUuid !== "");
  const rivals = [...new Set(others.map(({ serverUuid }) => serverUuid))];
  const status = held.get(volumeId) ?? "none of those of a server's volume";
  const proof =
    rivals.length > 0
      ? `Cinder gives it to server ${rivals.join(", ")}: two guests may write to it. Stop one of them, and detach the volume from the server that is not to have it (\`openstack server remove volume SERVER ${volumeId}\`)`
      : `its status in Cinder is ${status}, so that others can get it. \`openstack server reboot --hard ${uuid}\` connects it again; if Cinder has no such volume (\`openstack volume show ${volumeId}\`), detach it`;
  const where = `cell ${cell}, server ${uuid}, volume ${volumeId}`;
  return { law: LAW, what: "a server has a volume without an attachment in Cinder", where, proof };
}

function ofAnother({ id, volumeId, serverUuid }: AuditedAttachment, { cell }: AuditedHolder): Violation {
  return {
    ...{ law: LAW, what: "Cinder has an attachment of a volume that its server does not have" },
    where: `cell ${cell}, server ${serverUuid}, volume ${volumeId}, attachment ${id}`,
    proof: `apis end it within a minute or so when the cell says that no guest of the server is left anywhere. If it stays, look into their logs (\`volumes not settled\`), and if no guest uses the volume, run \`${ATTACHMENT_COMMAND} delete ${id}\``,
  };
}

function ofNobody({ id, volumeId, serverUuid }: AuditedAttachment): Violation {
  return {
    ...{ law: LAW, what: "Cinder has an attachment of a server that this cloud does not have" },
    where: `server ${serverUuid}, volume ${volumeId}, attachment ${id}`,
    proof: `no cell and no request knows the server, so that nobody ends the attachment. If another cloud uses this Cinder, too, say so with --shared-cinder; if none has the server, run \`${ATTACHMENT_COMMAND} delete ${id}\``,
  };
}

/** The volumes that Cinder takes for those of servers, although neither its attachments nor the API database give them to any. */
export function unnamedVolumes({
  attachments,
  held,
  named,
}: Pick<CinderFacts, "attachments" | "held" | "named">): readonly string[] {
  const attached = new Set(attachments.map(({ volumeId }) => volumeId));
  return [...held.keys()].filter((id) => !attached.has(id) && !named.has(id));
}

/** Volumes that nobody can attach or delete, since Cinder takes them for those of a server. */
function withoutHolder(facts: CinderFacts): readonly Violation[] {
  const owned = new Set([...facts.servers.values()].flatMap(({ volumes, inDoubt }) => [...volumes, ...inDoubt]));
  return unnamedVolumes(facts)
    .filter((id) => !owned.has(id))
    .map((id) => ({
      ...{ law: LAW, what: "Cinder takes a volume for that of a server, and nobody has it", where: `volume ${id}` },
      proof: `its status is ${facts.held.get(id)}, and it has no attachment. If \`${ATTACHMENT_COMMAND} list --all-projects --volume-id ${id}\` still shows none, no other service has reserved it, and no other cloud uses this Cinder (if one does, say so with --shared-cinder), run \`openstack volume set --state available --detached ${id}\``,
    }));
}
