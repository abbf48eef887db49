import { all, newer, no, ok, type Step } from "./session-steps.ts";

// The first steps of the session in `real-session.ts`: what an administrator needs before there are servers.

/** How the names of the agent's hosts begin. */
export const HOST = "cell-1-agent-1-host";

const IDENTITY: readonly Step[] = [
  ok("token issue", /project_id/),
  ok("catalog list", /network/),
  ...all(`
    catalog show compute
    catalog show network
    service list
    service list --long
    service show compute
    endpoint list
    endpoint list --service compute --interface public
    region list
    region show one
    domain list
    domain show default
    versions show
    versions show --service compute
    configuration show
    module list
    command list --group openstack.compute.v2
    project create --description words another
    project list
    project list --long
    project show another
    project set --description other another
    user create --password secret --project another someone
    user list
    user list --project another
    user show someone
    user set --email someone@example.org someone
    role list
    role show member
    role add --user someone --project another member
    role assignment list --names --project another
    role remove --user someone --project another member
    group create people
    group add user people someone
    group contains user people someone
    group remove user people someone
    group delete people
    application credential create --secret s own
    application credential list
    application credential delete own
    extension list --compute
    extension list --network
    extension show security-group
    availability zone list
    availability zone list --compute --long
    availability zone list --volume
  `),
  no("user show nobody", /No user/),
];

const FLAVORS_AND_IMAGES: readonly Step[] = [
  ...all(`
    flavor create --id f1 --vcpus 1 --ram 512 --disk 1 small
    flavor create --vcpus 2 --ram 1024 --disk 2 --ephemeral 1 --swap 128 big
    flavor create --vcpus 2 --ram 64 --disk 1 --private --property hw:cpu_policy=shared hidden
    flavor list
    flavor list --all --long
    flavor list --private
    flavor list --min-ram 600
    flavor list --limit 1
    flavor set --property hw:mem_page_size=any small
  `),
  ok("flavor show small", /hw:mem_page_size/),
  ok("flavor unset --property hw:mem_page_size small"),
  ok("flavor set --project another hidden"),
  ok("flavor show hidden", /access_project_ids/),
  newer("flavor set --description words big"),
  newer("flavor show big", /words/),
  ...all(`
    flavor unset --project another hidden
    flavor delete hidden
  `),
  no("flavor show hidden", /No Flavor found/),
  no("flavor create --id f1 --vcpus 1 --ram 1 --disk 1 again", /already exists/),
  ok(
    "image create --disk-format raw --container-format bare --file {file} --min-ram 64 --property hw_disk_bus=virtio any",
  ),
  ok("image create --disk-format raw --container-format bare --file {file} --public open"),
  ...all(`
    image list
    image list --long
    image list --public
    image list --private
    image list --status active
    image list --name any
    image list --property hw_disk_bus=virtio
    image list --sort name:asc
    image set --property os_distro=debian --tag t any
  `),
  ok("image show any", /os_distro='debian'/),
  ...all(`
    image unset --property os_distro --tag t any
    image set --name renamed open
    image show renamed
    image set --deactivate renamed
    image set --activate renamed
    image delete renamed
    keypair create k1
    keypair list
    keypair show k1
    keypair show --public-key k1
  `),
  newer("keypair create --type ssh --public-key {public} k2"),
  newer("keypair list --user admin"),
  no("keypair create k1", /already exists/),
];

const NETWORKS: readonly Step[] = [
  ...all(`
    network create --share shared
    network create --description words own
    network create --external --provider-network-type local outside
    subnet create --network shared --subnet-range 10.64.0.0/16 shared-subnet
    subnet create --network own --subnet-range 10.65.0.0/24 --gateway none own-subnet
    subnet create --network outside --subnet-range 192.0.2.0/24 --no-dhcp outside-subnet
    network list
    network list --external
    network list --long
    network show shared
    network set --name own2 own
    network set --name own own2
    subnet list
    subnet list --network shared
    subnet show shared-subnet
    subnet set --dns-nameserver 192.0.2.53 shared-subnet
    router create r1
    router add subnet r1 shared-subnet
    router set --external-gateway outside r1
    router list
    router show r1
    security group list
    security group create --description sites web
    security group rule create --protocol tcp --dst-port 80 web
    security group rule list web
    security group show web
    security group set --description all web
  `),
  ok("port create --network shared nic", /10\.64\./),
  ok("port create --network shared --fixed-ip ip-address=10.64.3.3 fixed", /10\.64\.3\.3/),
  no("port create --network shared --fixed-ip ip-address=10.64.3.3 twice", /already/),
  ...all(`
    port list
    port list --network shared
    port list --fixed-ip ip-address=10.64.3.3
    port show nic
    port set --name front nic
    port show front
    port delete fixed
    floating ip list
    ip availability list
    network agent list
    subnet pool list
    address scope list
  `),
];

// Before there are servers, since a host that has some does not change its zone.
const AGGREGATES: readonly Step[] = [
  ...all(`
    aggregate create --zone special agg
    aggregate list
    aggregate list --long
    aggregate add host agg ${HOST}-3
    aggregate set --property ssd=true --name agg2 agg
  `),
  ok("availability zone list --compute", /special/),
  ok("aggregate show agg2", new RegExp(`${HOST}-3[\\s\\S]*ssd='true'`)),
  newer("aggregate cache image agg2 any"),
  ...all(`
    aggregate unset --property ssd agg2
    aggregate remove host agg2 ${HOST}-3
    aggregate delete agg2
  `),
];

/** The steps up to the first server. */
export const REAL_PREPARATIONS: readonly Step[] = [IDENTITY, FLAVORS_AND_IMAGES, NETWORKS, AGGREGATES].flat();
