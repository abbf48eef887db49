import { AttachmentChanges } from "./attachment-changes.ts";
import type { ApiCall, SimAnswer } from "./call-in-process.ts";
import { InterfaceChanges } from "./interface-changes.ts";
import { LostGuests } from "./lost-guests.ts";
import type { Profile } from "./profiles.ts";
import { ServerChanges } from "./server-changes.ts";
import type { SimCloud } from "./sim-cloud.ts";
import { SIM_FLAVORS, SIM_IMAGE } from "./sim-flavors.ts";
import { SIM_GLANCE_IMAGES } from "./sim-glance.ts";
import { SIM_GROUPS } from "./sim-groups.ts";
import { SIM_NETWORK, type SimNeutron } from "./sim-neutron.ts";
import type { SimProcess } from "./sim-process.ts";
import { SnapshotChanges } from "./snapshot-changes.ts";
import { UnconfirmedMoves } from "./unconfirmed-moves.ts";
import { VolumeGrowths } from "./volume-growths.ts";
import { VolumeMigrations } from "./volume-migrations.ts";
import { VolumeRebuilds } from "./volume-rebuilds.ts";
import type { World } from "./world.ts";

/** Shares of the operations: deleting a server, and changing one. */
const DELETE_SHARE = 0.15;
const CHANGE_SHARE = 0.45;
/** Share of the created servers that belong to a server group. */
const GROUPED_SHARE = 0.4;
/** Maximum number of volumes of a new server. */
const VOLUMES_MAX = 2;
/** Share of the new servers that have a volume of several servers. */
const SHARED_SHARE = 0.3;
/** Most ports that are made for a new server, and the share of the new servers that get a port that a user has made. */
const PORTS_MAX = 2;
const USERS_PORT_SHARE = 0.2;
/** Share of the other changes of volumes that users make where they migrate volumes, which leave no volume alone for long. */
const OTHER_VOLUMES_SHARE = 0.25;
/** Number of tries of a delete that is not answered. */
const TRIES_MAX = 200;
const RETRY_MS = 500;

/** Users and operators. They create, change, move and delete servers through any api, at random moments. */
export class Workload {
  readonly #world: World;
  readonly #cloud: SimCloud;
  readonly #user: SimProcess;
  readonly #random: () => number;
  /** Decides which group a server belongs to. */
  readonly #groupOf: () => number;
  /** Decides which servers boot from volumes. */
  readonly #bootOf: () => number;
  /** Decides how many volumes a server has. */
  readonly #volumesOf: () => number;
  /** Decides which ports a server has. */
  readonly #portsOf: () => number;
  /** UUIDs of servers that an api has accepted and that nobody has asked to be deleted. */
  readonly #servers: string[] = [];
  readonly accepted = new Set<string>();
  readonly deleted = new Set<string>();
  readonly #changes: ServerChanges;
  readonly #attachmentChanges: AttachmentChanges;
  readonly #unconfirmedMoves: UnconfirmedMoves;
  readonly #volumeGrowths: VolumeGrowths;
  readonly #volumeMigrations: VolumeMigrations | null;
  readonly #snapshotChanges: SnapshotChanges | null;
  readonly #volumeRebuilds: VolumeRebuilds;
  readonly #interfaceChanges: InterfaceChanges;
  readonly #lostGuests: LostGuests;
  #open = 0;
  /** Number of unfinished deletes. It is needed because between two tries of a delete no call is open. */
  #deleting = 0;
  #stopped = false;
  #wantsLast = false;

  constructor(world: World, cloud: SimCloud, { changes, regretMsMax }: Pick<Profile, "changes" | "regretMsMax">) {
    this.#world = world;
    this.#cloud = cloud;
    this.#user = world.process("user");
    this.#random = world.random("workload");
    this.#groupOf = world.random("groups");
    this.#volumesOf = world.random("volumes");
    this.#bootOf = world.random("boot volumes");
    this.#portsOf = world.random("ports");
    this.#changes = new ServerChanges(world, {
      call: (call) => this.#call(call),
      look: (uuid) => cloud.look(uuid),
      servers: () => this.#servers,
      deletes: (uuid) => this.#deleteNow(uuid),
      darkHosts: () => this.#cloud.darkHosts(),
      fence: (host, isFenced) => this.#cloud.fence(host, isFenced),
      isOver: () => this.#stopped,
      keepsDeleted: cloud.keepsDeleted,
      offloadsAtOnce: cloud.offloadsAtOnce,
      changes,
      regretMsMax,
    });
    const user = {
      call: (call: ApiCall) => this.#call(call),
      look: (uuid: string) => cloud.look(uuid),
      servers: () => this.#servers,
      deletes: (uuid: string) => this.#deleteNow(uuid),
      isOver: () => this.#stopped,
    };
    this.#volumeRebuilds = new VolumeRebuilds(world, user);
    this.#attachmentChanges = new AttachmentChanges(world, user, cloud.cinder?.usersVolumes ?? []);
    const { cinder } = cloud;
    const migrations = cinder?.migrations ?? null;
    this.#volumeMigrations = migrations && new VolumeMigrations(world, user, migrations);
    this.#unconfirmedMoves = new UnconfirmedMoves(world, user, this.#attachmentChanges, this.#volumeMigrations);
    this.#volumeGrowths = new VolumeGrowths(world, user, (id) => cinder?.extend(id));
    const hasSnapshots = cinder?.fills === null && migrations === null;
    this.#snapshotChanges = hasSnapshots ? new SnapshotChanges(world, user, cinder) : null;
    this.#interfaceChanges = new InterfaceChanges(world, user, cloud.neutron?.usersPorts ?? []);
    const copiesOf = (uuid: string) => cloud.cells.flatMap((cell) => cell.copiesOf(uuid));
    this.#lostGuests = new LostGuests(world, { ...user, lost: cloud.lost, copiesOf });
    cloud.onLost = (uuid) => void this.#lostGuests.heal(uuid);
    cloud.onDark = (hosts) => {
      for (const host of hosts) void this.#changes.leave(host);
    };
    cloud.onCut = (hosts) => {
      for (const host of hosts) void this.#changes.leaveUnfenced(host);
    };
  }

  /** The hosts that an operator has ever asked to force down. */
  get toldDown(): ReadonlySet<string> {
    return this.#changes.toldDown;
  }

  /** How often each change of a server was begun. */
  get changes(): ReadonlyMap<string, number> {
    const begun = new Map(this.#changes.begun);
    if (this.#lostGuests.rebuilds > 0) begun.set("rebuilds of lost guests", this.#lostGuests.rebuilds);
    if (this.#cloud.cinder === null) return begun;
    const unconfirmed = ["volumes of an unconfirmed move", this.#unconfirmedMoves.changed] as const;
    const reimages = this.#cloud.fillsVolumes ? ([["reimage", this.#volumeRebuilds.begun]] as const) : [];
    return new Map([...begun, unconfirmed, ...reimages, ...this.#migrated()]);
  }

  /** How many volumes Cinder has begun to migrate, and how these migrations have ended. */
  #migrated(): readonly (readonly [string, number])[] {
    const { migrations = null } = this.#cloud.cinder ?? {};
    const counts = { ...this.#volumeMigrations?.counts, ...migrations?.counts };
    return Object.entries(counts).map(([what, count]) => [`volume migrations ${what}`, count]);
  }

  /** Whether no call is under way or planned. */
  get isIdle(): boolean {
    return (
      this.#open === 0 &&
      this.#cloud.lost.size === 0 &&
      this.#unconfirmedMoves.open === 0 &&
      this.#deleting === 0 &&
      !this.#wantsLast
    );
  }

  /** Starts this number of operations, spread over the time until `untilMs`. */
  begin(operations: number, fromMs: number, untilMs: number): void {
    const others = this.#volumeMigrations === null ? operations : operations * OTHER_VOLUMES_SHARE;
    if (this.#cloud.cinder !== null) this.#attachmentChanges.begin(others, fromMs, untilMs);
    if (this.#cloud.cinder?.fills === null) this.#unconfirmedMoves.begin(operations, fromMs, untilMs);
    if (this.#cloud.cinder !== null) this.#volumeGrowths.begin(others, fromMs, untilMs);
    this.#snapshotChanges?.begin(operations, fromMs, untilMs);
    this.#volumeMigrations?.begin(operations, fromMs, untilMs);
    if (this.#cloud.fillsVolumes) this.#volumeRebuilds.begin(operations, fromMs, untilMs);
    if (this.#cloud.neutron !== null) this.#interfaceChanges.begin(operations, fromMs, untilMs);
    for (let index = 0; index < operations; index += 1) {
      const delayMs = fromMs + this.#random() * (untilMs - fromMs);
      const what = this.#random();
      const choice = this.#random();
      this.#world.clock.setTimer(delayMs, () => {
        if (this.#stopped) return;
        if (what < DELETE_SHARE) void this.#deleteOne(choice);
        else void (what < DELETE_SHARE + CHANGE_SHARE ? this.#changes.changeOne(choice) : this.#create(choice));
      });
    }
  }

  /** Begins no more operations. */
  stop(): void {
    this.#stopped = true;
  }

  /** Creates one more server, and repeats the request until it is accepted, because a cloud that is whole again must take requests. */
  createLast(): void {
    const accepted = this.accepted.size;
    this.#wantsLast = true;
    const again = async (tries: number): Promise<void> => {
      await this.#create(0);
      this.#wantsLast = this.accepted.size === accepted;
      if (!this.#wantsLast) return;
      if (tries === TRIES_MAX) this.#world.find(5, "the faults are over and nothing is accepted");
      else this.#world.clock.setTimer(RETRY_MS, () => void again(tries + 1));
    };
    void again(1);
  }

  /**
   * Deletes these servers, even those of which no user knows that they were accepted. Each delete is repeated until an answer says that the
   * server is gone.
   */
  deleteAll(uuids: readonly string[]): void {
    this.#servers.length = 0;
    for (const uuid of uuids) void this.#delete(uuid);
  }

  async #create(choice: number): Promise<void> {
    const networks = this.#cloud.neutron === null ? "none" : this.#networks(this.#cloud.neutron);
    const flavor = SIM_FLAVORS[Math.floor(choice * SIM_FLAVORS.length)]!;
    const { cinder } = this.#cloud;
    const boots = cinder !== null && this.#bootOf() < cinder.bootShare;
    const mappings = cinder === null ? [] : this.#mappings(cinder.sharedVolumes, boots);
    const plain = { name: "sim", flavorRef: flavor.id, imageRef: boots ? "" : SIM_IMAGE, networks };
    const server = { ...plain, ...(mappings.length > 0 && { block_device_mapping_v2: mappings }) };
    const group = SIM_GROUPS[Math.floor((this.#groupOf() / GROUPED_SHARE) * SIM_GROUPS.length)];
    const payload = group ? { server, "os:scheduler_hints": { group: group.uuid } } : { server };
    const answer = await this.#call({ method: "POST", url: "/v2.1/servers", payload });
    if (answer === null) return;
    if (answer.status !== 202) {
      this.#world.history.record("user", "refused", { status: answer.status, body: answer.body });
      // Overload and lost databases are 503 and 504, and a shared volume or a user's port may be busy; anything else is a bug.
      const isBusy =
        (answer.status === 400 && mappings.some((one) => one.source_type === "volume")) ||
        ([400, 409].includes(answer.status) && networks !== "none" && networks.some((one) => "port" in one));
      if (answer.status < 503 && !isBusy)
        this.#world.find(5, `a create was answered with ${answer.status}: ${answer.body}`);
      return;
    }
    const { uuid } = idOf(answer.body);
    this.#world.history.record("user", "created", { server: uuid });
    this.accepted.add(uuid);
    this.#servers.push(uuid);
  }

  /** New volumes, beside the local disk or the boot volume, that end with their server, and sometimes one that other servers have, too. */
  #mappings(shared: readonly string[], boots: boolean): readonly Readonly<Record<string, unknown>>[] {
    const count = Math.floor(this.#volumesOf() * (VOLUMES_MAX + 1));
    const image = { source_type: "image", destination_type: "local", uuid: SIM_IMAGE, boot_index: 0 };
    const blank = { source_type: "blank", destination_type: "volume", volume_size: 1, delete_on_termination: true };
    const made = { ...image, destination_type: "volume", volume_size: 1, uuid: SIM_GLANCE_IMAGES[0] };
    const root = { ...(boots ? made : image), delete_on_termination: true };
    const uuid = shared[Math.floor((this.#volumesOf() / SHARED_SHARE) * shared.length)];
    const further = uuid === undefined ? [] : [{ source_type: "volume", destination_type: "volume", uuid }];
    const volumes = [...Array.from({ length: count }, () => blank), ...further];
    return volumes.length === 0 && !boots ? [] : [root, ...volumes];
  }

  /** New ports, which end with their server, and sometimes one that a user has made. */
  #networks({ usersPorts }: SimNeutron): readonly Readonly<Record<string, unknown>>[] {
    const count = 1 + Math.floor(this.#portsOf() * PORTS_MAX);
    const port = usersPorts[Math.floor((this.#portsOf() / USERS_PORT_SHARE) * usersPorts.length)];
    return [...Array.from({ length: count }, () => ({ uuid: SIM_NETWORK })), ...(port === undefined ? [] : [{ port }])];
  }

  async #deleteOne(choice: number): Promise<void> {
    const [uuid] = this.#servers.splice(Math.floor(choice * this.#servers.length), 1);
    if (uuid !== undefined) await this.#delete(uuid);
  }

  async #deleteNow(uuid: string): Promise<void> {
    const at = this.#servers.indexOf(uuid);
    if (at < 0) return;
    this.#servers.splice(at, 1);
    await this.#delete(uuid);
  }

  async #delete(uuid: string): Promise<void> {
    this.#world.onUnwanted(uuid, "gone");
    this.#cloud.cinder?.share.unwanted(uuid);
    this.#deleting += 1;
    await this.#deleteAgain(uuid);
    this.#deleting -= 1;
  }

  async #deleteAgain(uuid: string): Promise<void> {
    for (let tries = 0; tries < TRIES_MAX; tries += 1) {
      // Every other delete is a forced one, and all are where deleted servers are kept.
      const url = `/v2.1/servers/${uuid}`;
      const answer = await this.#call(
        tries % 2 === 0 && !this.#cloud.keepsDeleted
          ? { method: "DELETE", url }
          : { method: "POST", url: `${url}/action`, payload: { forceDelete: null } },
      );
      if (answer !== null && (answer.status === 204 || answer.status === 202 || answer.status === 404)) {
        this.#world.history.record("user", "deleted", { server: uuid, status: answer.status });
        this.deleted.add(uuid);
        return;
      }
      await new Promise<void>((resolve) => this.#world.clock.setTimer(RETRY_MS, resolve));
    }
    this.#world.find(5, `server ${uuid} cannot be deleted`);
  }

  async #call(call: ApiCall): Promise<SimAnswer | null> {
    const apis = this.#cloud.supervisor.names("api");
    const api = apis[Math.floor(this.#random() * apis.length)]!;
    this.#open += 1;
    const answer = await this.#cloud.call(this.#user, api, call);
    this.#open -= 1;
    return answer;
  }
}

function idOf(body: string): { readonly uuid: string } {
  const { server } = JSON.parse(body) as { readonly server: { readonly id: string } };
  return { uuid: server.id };
}
