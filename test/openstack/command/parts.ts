import { globSync } from "node:fs";
import { basename, join } from "node:path";

const FOLDER = join(import.meta.dirname, "..");
const PYTHON = "/usr/lib/python3/dist-packages";

/** Debian's packages of the services beside which Berth runs, as `scripts/setup.mjs` takes them: what must exist, and the package that has it. */
const NEIGHBOURS = [
  "keystone-manage:keystone",
  "glance-manage:glance-api",
  "neutron-server:neutron-server",
  "cinder-wsgi:cinder-api",
  "cinder-scheduler:cinder-scheduler",
  "cinder-volume:cinder-volume",
  `${PYTHON}/pymysql:python3-pymysql`,
];
const PLACEMENT = ["placement-manage:placement-api", "mariadbd:mariadb-server", `${PYTHON}/psycopg2:python3-psycopg2`];
const NOVA = ["rabbitmq-server", "nova-api", "nova-conductor", "nova-scheduler", "nova-compute"];
const TEMPEST = [`${PYTHON}/tempest:python3-tempest`];

/** A part of `npm run test:openstack`. */
export interface Part {
  readonly what: string;
  /** The files with its tests, in `test/openstack`. One file may have tests of several parts. */
  readonly files: readonly string[];
  readonly packages: readonly string[];
  /** False for what takes long and adds little to the others: it runs if it is asked for. */
  readonly isDefault: boolean;
}

/** The file whose parts share a Keystone, Glance, Neutron and Cinder, and Berth beside them. */
const SHARED = "real-cloud.test.ts";

const NAMED = {
  samples: {
    what: "the sample requests of Nova's documentation, and the rules of its policy",
    files: ["samples/upstream-samples.test.ts", "nova-policies.test.ts"],
    packages: [`${PYTHON}/oslo_policy:python3-oslo.policy`],
    isDefault: true,
  },
  client: {
    what: "sessions of the openstack command, in a trial cloud and with Keystone, Glance, Neutron and Cinder",
    files: ["client-session.test.ts", SHARED],
    packages: [...NEIGHBOURS, "openstack:python3-openstackclient"],
    isDefault: true,
  },
  horizon: {
    what: "Horizon in Chromium, in a trial cloud and with Keystone, Glance, Neutron and Cinder",
    files: ["horizon.test.ts", SHARED],
    packages: [...NEIGHBOURS, "/usr/share/openstack-dashboard/manage.py:openstack-dashboard", "chromium"],
    isDefault: true,
  },
  tempest: {
    what: "Tempest's tempest.api.compute, with Keystone, Glance, Neutron and Cinder",
    files: [SHARED],
    packages: [...NEIGHBOURS, ...TEMPEST],
    isDefault: true,
  },
  "tempest-trial": {
    what: "Tempest's tempest.api.compute in a trial cloud",
    files: ["tempest/trial.test.ts"],
    packages: TEMPEST,
    isDefault: false,
  },
  "tempest-beside": {
    what: "Tempest's tempest.api.compute, and calls made twice, with Berth and with Debian's Nova",
    files: ["tempest/beside.test.ts"],
    packages: [...NEIGHBOURS, ...PLACEMENT, ...NOVA, ...TEMPEST],
    isDefault: false,
  },
  heat: {
    what: "a stack of Heat that is made, changed and deleted, with Keystone, Glance, Neutron and Cinder",
    files: [SHARED],
    packages: [...NEIGHBOURS, "heat-api", "heat-engine", "mariadbd:mariadb-server"],
    isDefault: false,
  },
  masakari: {
    what: "Masakari, which is told of hosts, servers and processes that fail",
    files: [SHARED],
    packages: [...NEIGHBOURS, "masakari-api", "masakari-engine"],
    isDefault: false,
  },
  rally: {
    what: "scenarios of Rally about servers, key pairs, flavors and quotas",
    files: [SHARED],
    packages: [...NEIGHBOURS, "rally", `${PYTHON}/rally_openstack:python3-rally-openstack`],
    isDefault: false,
  },
} satisfies Readonly<Record<string, Part>>;

export type PartName = keyof typeof NAMED | "contracts";

const ofNamed: readonly string[] = Object.values(NAMED).flatMap(({ files }) => files);

/** All parts, in the order in which the summary names them. */
export const PARTS: Readonly<Record<PartName, Part>> = {
  ...NAMED,
  contracts: {
    what: "Keystone, Glance, Neutron, Cinder and Placement, each by itself",
    files: globSync("*.test.ts", { cwd: FOLDER }).filter((file) => !ofNamed.includes(file)),
    packages: [...NEIGHBOURS, ...PLACEMENT],
    isDefault: true,
  },
};

export const PART_NAMES = Object.keys(PARTS) as readonly PartName[];

/** The parts that run unless others are chosen. */
export const DEFAULT_PARTS = PART_NAMES.filter((name) => PARTS[name].isDefault);

/** The parts of which a test file has tests. */
export function partsOfFile(path: string): readonly PartName[] {
  const owns = (name: PartName) => PARTS[name].files.some((file) => path.endsWith(join(basename(FOLDER), file)));
  return PART_NAMES.filter(owns);
}
