import { all, keep, newer, no, ok, type Step, settle, settleVolume } from "./session-steps.ts";

const IDENTITY: readonly Step[] = [
  ok("token issue", /project_id/),
  ok("catalog list", /compute[\s\S]*placement[\s\S]*network/),
  ok("project list", /admin[\s\S]*demo/),
  ok("role assignment list --names", /admin@Default/),
  ...all(`
    catalog show compute
    project show demo
    user list
    user show demo
    role list
    role show member
    service list
    service show nova
    endpoint list
    endpoint list --service compute
    region list
    region show RegionOne
    domain list
    domain show default
    versions show
    configuration show
    module list
    extension list --compute
    extension list --network
    extension show security-group
    availability zone list
    availability zone list --compute --long
  `),
  no("project create another", /users' file/),
  no("user create another", /users' file/),
  no("token revoke unknown", /Could not find token/),
];

const FLAVORS_AND_IMAGES: readonly Step[] = [
  ...all(`
    flavor create --id f1 --vcpus 1 --ram 512 --disk 1 small
    flavor create --vcpus 2 --ram 1024 --disk 2 big
    flavor create --vcpus 2 --ram 64 --disk 1 --private --property hw:cpu_policy=shared hidden
    flavor list
    flavor list --all --long
    flavor set --property hw:mem_page_size=any small
  `),
  ok("flavor show small", /hw:mem_page_size/),
  ok("flavor unset --property hw:mem_page_size small"),
  ok("flavor set --project demo hidden"),
  ok("flavor show hidden", /access_project_ids/),
  ...all(`
    flavor unset --project demo hidden
    flavor delete hidden
    flavor create --vcpus 1 --ram 64 --disk 1 gone
    flavor delete gone
  `),
  no("flavor show gone", /No Flavor found/),
  ...all(`
    image create --disk-format qcow2 --container-format bare --min-ram 64 --property hw_disk_bus=virtio any
    image list --long
    image set --property os_distro=debian --tag t any
  `),
  ok("image show any", /os_distro='debian'/),
  ...all(`
    image unset --property os_distro --tag t any
    image create --public open
    image list
  `),
  ok("image list --public", /open/),
  ok("image list --private"),
  ...all(`
    image set --name renamed open
    image delete renamed
    keypair create k1
    keypair list
    keypair show k1
    keypair show --public-key k1
  `),
];

const NETWORKS: readonly Step[] = [
  ok("network list", /shared/),
  ok("subnet list --network shared", /10\.64\.0\.0\/10/),
  ok("security group list", /default/),
  ok("port create --network shared nic", /10\.64\./),
  ok("port create --network shared --fixed-ip ip-address=10.64.3.3 fixed", /10\.64\.3\.3/),
  no("port create --network shared --fixed-ip ip-address=10.64.3.3 twice", /already in use/),
  no("port create --network shared --fixed-ip ip-address=192.0.2.1 outside", /not a valid IP/),
  ...all(`
    network show shared
    network list --external
    subnet list
    subnet show shared-subnet
    security group show default
    security group rule list default
    port list
    port list --network shared
    port list --fixed-ip ip-address=10.64.3.3
    port show nic
    port set --name front nic
    port show front
    port delete fixed
    floating ip list
    router list
    network agent list
    subnet pool list
    address scope list
    address group list
    network qos policy list
    network rbac list
    network trunk list
    network segment list
  `),
  ...all(`
    security group create --description sites web
    security group rule create --protocol tcp --dst-port 80 web
    security group show web
    security group set --description all web
  `),
  no("network create other", /cannot be changed/),
  no("ip availability list", /404/),
];

const BOOTS: readonly Step[] = [
  ok("server create --flavor small --image any --network shared first", /BUILD/),
  ok("server create --flavor small --image any --security-group default --key-name k1 --property a=b second"),
  ok("server create --flavor small --image any --port front third"),
  newer("server create --flavor small --image any --nic none --description words --tag blue --hostname four fourth"),
  newer("server create --flavor small --image any --nic auto fifth"),
  ok("server create --flavor small --image any --min 2 --max 2 many"),
  ok("server create --flavor small --image any --user-data /etc/hostname --config-drive true driven"),
  no("server create --flavor small --image any --network other lost", /No Network found/),
  no("server create --flavor nosuch --image any lost", /No flavor/),
  ...["first", "second", "third", "fourth", "fifth", "many-1", "many-2", "driven"].map((name) => settle(name)),
  ok("server show first -c addresses -f value", /10\.64\./),
  newer("server show fourth", /four[\s\S]*blue/),
  ok("port list --server third", /front/),
  ok("server list --long", /shared=10\.64/),
  ok("server list --ip 10.64", /first/),
  newer("server list --tags blue", /fourth/),
  newer("server list --key-name k1"),
  ...all(`
    server list
    server list --all-projects
    server list --name first
    server list --status ACTIVE
    server list --flavor small
    server list --image any
    server list --host cell-1-host-1
    server list --limit 2
    server list --marker first
    server list --deleted
    server list --changes-since 2026-01-01T00:00:00Z
    server list --no-name-lookup
    server show first --diagnostics
    server volume list first
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
  ok("server set --state active first"),
  ...[
    ["stop", "SHUTOFF"],
    ["start", "ACTIVE"],
    ["reboot", "ACTIVE"],
    ["reboot --hard", "ACTIVE"],
    ["pause", "PAUSED"],
    ["unpause", "ACTIVE"],
    ["suspend", "SUSPENDED"],
    ["resume", "ACTIVE"],
    ["rescue", "RESCUE"],
    ["unrescue", "ACTIVE"],
  ].flatMap(([action, status]) => [ok(`server ${action} first`), settle("first", status)]),
  newer("server dump create first"),
  settle("first"),
  ok("server lock first"),
  ok("server unlock first"),
  newer("server lock --reason why first"),
  newer("server show first", /why/),
  ok("server unlock first"),
  ok("server add network first shared"),
  newer("server add fixed ip --fixed-ip-address 10.64.4.4 first shared"),
  // Up to 2.43, the client calls an action that Neutron has replaced.
  no("server add fixed ip first shared", /exactly one address/),
  ok("server show first -c addresses -f value", /10\.64\.4\.4/),
  ok("server remove network first shared"),
  ok("server show first -c addresses -f value", /^\{?\}?\s*$/),
  ok("port create --network shared spare"),
  ok("server add port first spare"),
  ok("server show first -c addresses -f value", /10\.64\./),
  ok("server remove port first spare"),
  no("server add port first nosuch", /No Port found/),
];

const VOLUMES: readonly Step[] = [
  ok("volume create --size 1 --description words --property a=b data", /creating|available/),
  ok("volume create --size 2 more"),
  ...all(`
    volume list
    volume list --long
    volume list --all-projects
    volume type list
    volume snapshot list
    volume backup list
    availability zone list --volume
    quota show
  `),
  ok("volume list --name data -f value -c Name", /^data\s*$/),
  ok("volume list --status available -f value -c Name", /data/),
  ok("volume show data", /a='b'/),
  ok("volume set --property c=d --description others data"),
  ok("volume unset --property c data"),
  ok("volume show data -c properties -f value", /^\{'a': 'b'\}\s*$/),
  ok("volume set --name kept more"),
  ok("server add volume first data"),
  settleVolume("data", "in-use"),
  ok("server volume list first", /vd[a-z]/),
  ok("server show first -c volumes_attached -f value", /id/),
  no("server add volume second data", /already attached/),
  no("volume delete data", /in-use|available/),
  newer("server add volume --tag t --enable-delete-on-termination second kept"),
  settleVolume("kept", "in-use"),
  newer("server volume list second", /True/),
  ok("server remove volume first data"),
  settleVolume("data", "available"),
  ok("server add volume first data"),
  settleVolume("data", "in-use"),
  no("volume show nosuch", /No volume/),
];

const MOVES: readonly Step[] = [
  ok("server resize --flavor big first"),
  settle("first", "VERIFY_RESIZE"),
  ok("server resize revert first"),
  settle("first"),
  ok("server resize --flavor big first"),
  settle("first", "VERIFY_RESIZE"),
  ok("server resize confirm first"),
  settle("first"),
  ok("server migrate second"),
  settle("second", "VERIFY_RESIZE"),
  ok("server migration list", /second|VERIFY|finished/i),
  ok("server migrate confirm second"),
  settle("second"),
  newer("server migrate --live-migration second"),
  settle("second"),
  newer("server migration list --server second", /live-migration/),
  ok("server shelve third"),
  settle("third", "SHELVED"),
  ok("server unshelve third"),
  settle("third"),
  ok("server rebuild third"),
  settle("third"),
  ok("server rebuild --image any third"),
  settle("third"),
  ok("server show third -c addresses -f value", /10\.64\./),
  ok("server event list first", /resize/),
  newer("server event list first --long"),
];

const GROUPS: readonly Step[] = [
  ok("server group create --policy anti-affinity g1"),
  ok("server group list", /anti-affinity/),
  ok("server group show g1"),
  keep("group", "server group show g1 -f value -c id"),
  ok("server create --flavor small --image any --hint group={group} grouped"),
  settle("grouped"),
  ok("server group show g1 -c members -f value", /[0-9a-f-]{36}/),
  ok("server group delete g1"),
];

const OPERATORS: readonly Step[] = [
  ...all(`
    aggregate create agg
    aggregate list
    aggregate list --long
    aggregate add host agg cell-1-host-1
    aggregate set --property ssd=true --name agg2 agg
  `),
  ok("aggregate show agg2", /cell-1-host-1[\s\S]*ssd='true'/),
  ...all(`
    aggregate unset --property ssd agg2
    aggregate remove host agg2 cell-1-host-1
    aggregate delete agg2
    hypervisor list
    hypervisor list --long
    hypervisor list --matching cell-1
    hypervisor show cell-1-host-1
    hypervisor stats show
    host list
    host show cell-1-host-1
    compute service list
    compute service list --long
    compute service list --host cell-1-host-1
    compute service set --disable --disable-reason why cell-1-host-2 nova-compute
    compute service set --enable cell-1-host-2 nova-compute
  `),
  newer("hypervisor list --limit 2"),
  newer("hypervisor show cell-1-host-1"),
  newer("compute service set --down cell-1-host-3 nova-compute"),
  newer("compute service set --up cell-1-host-3 nova-compute"),
  // Nova has removed this route.
  no("compute agent list", /404|410/),
];

const LIMITS: readonly Step[] = [
  ok("limits show --absolute", /maxTotalInstances/),
  ok("limits show --rate"),
  ok("quota show", /instances/),
  ok("quota set --instances 30 demo"),
  ok("quota show demo", /instances\s+\|\s+30/),
  ...all(`
    quota show --default
    quota set --cores 40 --ram 100000 demo
    quota list --compute
    quota list --network
    usage list
    usage show
  `),
  // The client treats its argument as a project.
  no("quota show --class default", /No project with a name/),
  // The client fails on a report without servers, because it formats numbers that the report does not have.
  no("usage show --project demo", /must be real number/),
];

const ENDS: readonly Step[] = [
  ok("server delete second"),
  settle("second", null),
  ok("server delete first third fourth fifth many-1 many-2 driven grouped"),
  ...["first", "third", "fourth", "fifth", "many-1", "many-2", "driven", "grouped"].map((name) => settle(name, null)),
  no("server delete nosuch", /No server/),
  // One volume was to go with its server, and the other one to stay.
  settleVolume("data", "available"),
  ok("volume list -f value -c Name", /^data\s*$/),
  ok("volume delete data"),
  // Resources that were made for servers were removed with them, and those that a client made have stayed.
  ok("port list -f value -c Name", /^(?:front\nspare|spare\nfront)\s*$/),
  ...all(`
    port delete front spare
    keypair delete k1
    image delete any
    flavor delete big small
    token issue
  `),
];

/** The commands of an administrator's session. */
export const SESSION: readonly Step[] = [
  ...[IDENTITY, FLAVORS_AND_IMAGES, NETWORKS, BOOTS, CHANGES, VOLUMES, MOVES, GROUPS, OPERATORS, LIMITS, ENDS].flat(),
];
