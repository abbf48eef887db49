import { HOST, REAL_PREPARATIONS } from "./real-preparations.ts";
import { all, keep, newer, no, ok, type Step, settle, settleVolume } from "./session-steps.ts";

// The steps of an administrator's session in a cloud of Berth, Keystone, Glance, Neutron and Cinder (`real-cloud.ts`).

const BOOTS: readonly Step[] = [
  ok("server create --flavor small --image any --network shared first", /BUILD/),
  ok(
    "server create --flavor small --image any --network shared --security-group default --key-name k1 --property a=b second",
  ),
  ok("server create --flavor small --image any --port front third"),
  newer("server create --flavor small --image any --nic none --description words --tag blue --hostname four fourth"),
  ok("server create --flavor small --image any --nic net-id=own --nic net-id=shared fifth"),
  ok("server create --flavor small --image any --network shared --min 2 --max 2 many"),
  ok("server create --flavor small --image any --network shared --user-data {file} --config-drive true driven"),
  newer(`server create --flavor small --image any --network shared --host ${HOST}-2 placed`),
  no("server create --flavor small --image any --network other lost", /No Network found/),
  no("server create --flavor nosuch --image any lost", /No flavor/),
  no("server create --flavor small --image nosuch lost", /No Image found/),
  no("server create --flavor small --image any --network shared --key-name none lost", /Invalid key_name/),
  ...["first", "second", "third", "fourth", "fifth", "many-1", "many-2", "driven", "placed"].map((name) =>
    settle(name),
  ),
  ok("server show first -c addresses -f value", /10\.64\./),
  ok("server show fifth -c addresses -f value", /10\.65\.[\s\S]*10\.64\.|10\.64\.[\s\S]*10\.65\./),
  ok("server show placed -c OS-EXT-SRV-ATTR:host -f value", new RegExp(`${HOST}-2`)),
  newer("server show fourth", /four[\s\S]*blue/),
  ok("port list --server third", /front/),
  ok("server list --long", /shared=10\.64/),
  ok("server list --ip 10.64", /first/),
  newer("server list --tags blue", /fourth/),
  newer("server list --not-tags blue", /first/),
  newer("server list --key-name k1"),
  newer("server list --changes-before 2099-01-01T00:00:00Z"),
  newer("server list --unlocked"),
  newer("server list --power-state running"),
  ...all(`
    server list
    server list --all-projects
    server list --project admin
    server list --user admin
    server list --name first
    server list --status ACTIVE
    server list --flavor small
    server list --image any
    server list --host ${HOST}-2
    server list --sort-column Name --sort-descending
    server list --limit 2
    server list --marker first
    server list --deleted
    server list --changes-since 2026-01-01T00:00:00Z
    server list --no-name-lookup
    server show first --diagnostics
    server volume list first
    server ssh --help
  `),
  newer("server list --locked"),
  newer("server list --availability-zone nova", /first/),
  newer("server list --no-config-drive", /first/),
  newer("server show first --topology"),
];

const CHANGES: readonly Step[] = [
  ...all(`
    server set --name first-again first
    server set --name first first-again
    server set --property c=d first
  `),
  ok("server show first", /c='d'/),
  ok("server unset --property c first"),
  newer("server set --description other --tag red first"),
  newer("server unset --description --tag red first"),
  newer("server set --hostname other first"),
  ok("server set --state error first"),
  ok("server set --state active first"),
  ...[
    ["stop", "SHUTOFF"],
    ["start", "ACTIVE"],
    ["reboot", "ACTIVE"],
    ["reboot --hard", "ACTIVE"],
    ["reboot --soft --wait", "ACTIVE"],
    ["pause", "PAUSED"],
    ["unpause", "ACTIVE"],
    ["suspend", "SUSPENDED"],
    ["resume", "ACTIVE"],
    ["rescue", "RESCUE"],
    ["unrescue", "ACTIVE"],
    ["rescue --image any", "RESCUE"],
    ["unrescue", "ACTIVE"],
  ].flatMap(([action, status]) => [ok(`server ${action} first`), settle("first", status)]),
  newer("server dump create first"),
  settle("first"),
  ok("console log show first"),
  ok("console log show --lines 2 first"),
  no("console url show first", /Unavailable console type|Guest does not have a console/),
  ok("server lock first"),
  ok("server unlock first"),
  newer("server lock --reason why first"),
  newer("server show first", /why/),
  ok("server unlock first"),
  // Hosts that pretend to build have no disk to upload, so the images stay queued in Glance, as with Nova's fake driver, until Berth gives up after five minutes.
  ok("server image create --name copy first", /copy/),
  settle("first"),
  ok("server backup create --name saved --type daily --rotate 1 first"),
  settle("first"),
  ok("image show copy", /base_image_ref/),
  ok("image show saved", /backup_type='daily'/),
  ok("image delete copy saved"),
  ok("server add security group first web"),
  ok("server show first -c security_groups -f value", /web/),
  ok("server remove security group first web"),
  ok("server add network first own"),
  newer("server add fixed ip --fixed-ip-address 10.64.4.4 first shared"),
  ok("server add fixed ip first shared"),
  ok("server show first -c addresses -f value", /10\.64\.4\.4/),
  // The client calls a method that its own library has no longer.
  no("server remove fixed ip first 10.64.4.4", /remove_fixed_ip/),
  ok("server remove network first own"),
  ok("port create --network shared spare"),
  ok("server add port first spare"),
  ok("port show spare -c device_owner -f value", /compute:/),
  ok("server remove port first spare"),
  no("server add port first nosuch", /No Port found/),
  keep("floating", "floating ip create outside -f value -c floating_ip_address"),
  ok("server add floating ip second {floating}"),
  // This Neutron sends no events, so the server does not show it.
  ok("floating ip show {floating}", /10\.64\./),
  ok("server remove floating ip second {floating}"),
  ok("floating ip delete {floating}"),
];

const VOLUMES: readonly Step[] = [
  ok("volume create --size 1 --description words --property a=b data", /creating|available/),
  ok("volume create --size 1 more"),
  settleVolume("data", "available"),
  settleVolume("more", "available"),
  ...all(`
    volume list
    volume list --long
    volume list --all-projects
    volume type list
    volume type show __DEFAULT__
    volume snapshot list
    volume service list
    volume qos list
    consistency group list
  `),
  ok("volume list --name data -f value -c Name", /^data\s*$/),
  ok("volume show data", /a='b'/),
  ok("volume set --property c=d --description others data"),
  ok("volume unset --property c data"),
  ok("volume set --name kept more"),
  ok("server add volume first data"),
  settleVolume("data", "in-use"),
  ok("server volume list first", /vd[a-z]/),
  no("server add volume second data", /must be available|already attached|status/),
  no("volume delete data", /in-use|available/),
  newer("server add volume --tag t --enable-delete-on-termination second kept"),
  settleVolume("kept", "in-use"),
  newer("server volume list second", /True/),
  keep("volume", "volume show kept -f value -c id"),
  newer("server volume update --preserve-on-termination second {volume}"),
  newer("server volume update --delete-on-termination second {volume}"),
  ok("server remove volume first data"),
  settleVolume("data", "available"),
  ok("volume set --bootable data"),
  ok("server create --flavor small --volume data --network shared booted"),
  settle("booted"),
  settleVolume("data", "in-use"),
  ok("server show booted -c volumes_attached -f value", /id/),
  ok("server delete --wait booted"),
  settleVolume("data", "available"),
  no("volume show nosuch", /No volume/),
];

const MOVES: readonly Step[] = [
  ok("server resize --flavor big first"),
  settle("first", "VERIFY_RESIZE"),
  ok("server resize revert first"),
  settle("first"),
  ok("server resize --flavor big --wait first"),
  settle("first", "VERIFY_RESIZE"),
  ok("server resize confirm first"),
  settle("first"),
  ok("server migrate second"),
  settle("second", "VERIFY_RESIZE"),
  ok("server migration list", /VERIFY|finished/i),
  newer("server migration list --server second --type cold-migration"),
  ok("server migrate revert second"),
  settle("second"),
  newer(`server migrate --live-migration --host ${HOST}-4 placed`),
  settle("placed"),
  ok("server show placed -c OS-EXT-SRV-ATTR:host -f value", new RegExp(`${HOST}-4`)),
  newer("server migration list --server placed", /live-migration/),
  ok("server shelve third"),
  settle("third", "SHELVED_OFFLOADED"),
  ok("server unshelve third"),
  settle("third"),
  ok("server shelve --offload --wait third"),
  settle("third", "SHELVED_OFFLOADED"),
  newer("server unshelve --availability-zone nova third"),
  settle("third"),
  ok("server rebuild third"),
  settle("third"),
  newer("server rebuild --image any --name third --description anew third"),
  settle("third"),
  ok("server event list first", /resize/),
  newer("server event list first --long"),
  newer("server event list first --limit 1"),
];

const OPERATORS: readonly Step[] = [
  ok("server group create --policy anti-affinity g1"),
  newer("server group create --policy soft-affinity g2"),
  newer("server group create --policy anti-affinity --rule max_server_per_host=2 g3"),
  ok("server group list", /anti-affinity/),
  ok("server group list --all-projects --long"),
  ok("server group show g1"),
  keep("group", "server group show g1 -f value -c id"),
  ok("server create --flavor small --image any --network shared --hint group={group} grouped"),
  settle("grouped"),
  ok("server group show g1 -c members -f value", /[0-9a-f-]{36}/),
  ok("server group delete g1 g2 g3"),
  ...all(`
    hypervisor list
    hypervisor list --long
    hypervisor list --matching ${HOST}
    hypervisor show ${HOST}-1
    hypervisor stats show
    host list
    host show ${HOST}-1
    compute service list
    compute service list --long
    compute service list --host ${HOST}-1
    compute service list --service nova-compute
    compute service set --disable --disable-reason why ${HOST}-3 nova-compute
    compute service set --enable ${HOST}-3 nova-compute
  `),
  newer("hypervisor list --limit 2"),
  newer(`hypervisor show ${HOST}-1`),
  newer(`compute service set --down ${HOST}-3 nova-compute`),
  newer(`compute service set --up ${HOST}-3 nova-compute`),
  no("compute service delete 1", /not found|404/),
  no("compute agent list", /404|410/),
];

const LIMITS: readonly Step[] = [
  ok("limits show --absolute", /maxTotalInstances/),
  ok("limits show --absolute --project another"),
  ok("limits show --rate"),
  ok("quota show", /instances/),
  ok("quota set --instances 30 another"),
  ok("quota show another", /instances\s+\|\s+30/),
  ...all(`
    quota show --default
    quota set --cores 40 --ram 100000 another
    quota set --volumes 20 another
    quota set --networks 20 another
    quota list --compute
    quota list --network
    quota list --volume
    usage list
    usage show
  `),
  no("usage show --project another", /must be real number/),
];

const SERVERS = ["first", "third", "fourth", "fifth", "many-1", "many-2", "driven", "placed", "grouped"];

const ENDS: readonly Step[] = [
  ok("server delete second"),
  settle("second", null),
  ok(`server delete ${SERVERS.join(" ")}`),
  ...SERVERS.map((name) => settle(name, null)),
  no("server delete nosuch", /No server/),
  // The volume that was to go with its server is gone, and the other one stays.
  settleVolume("data", "available"),
  ok("volume list -f value -c Name", /^data\s*$/),
  ok("volume delete data"),
  // The ports that were made for servers are gone, and those that a client made have stayed.
  ok("port list --network shared -f value -c Name", /^\s*(?:front\s+spare|spare\s+front)\s*$/),
  ...all(`
    port delete front spare
    router unset --external-gateway r1
    router remove subnet r1 shared-subnet
    router delete r1
    security group delete web
    network delete own shared outside
    keypair delete k1
    image delete any
    flavor delete big small
    user delete someone
    project delete another
    token revoke {token}
  `),
];

/** The commands of the session, in which `{file}` stands for a small file, and `{public}` for one with a public key. */
export const REAL_SESSION: readonly Step[] = [
  ...[REAL_PREPARATIONS, BOOTS, CHANGES, VOLUMES, MOVES, OPERATORS, LIMITS].flat(),
  keep("token", "token issue -f value -c id"),
  ...ENDS,
];
