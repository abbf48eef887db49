/** An answer of the metadata service. */
export interface MetadataAnswer {
  readonly status: 200 | 404;
  readonly contentType: string;
  readonly body: Buffer;
}

/** The versions of OpenStack's metadata. Each has the same documents here, as newer ones only add to older ones. */
const OPENSTACK_VERSIONS = [
  ...["2012-08-10", "2013-04-04", "2013-10-17", "2015-10-15", "2016-06-30", "2016-10-06", "2017-02-22", "2018-08-27"],
];
const EC2_VERSIONS = [
  ...["1.0", "2007-01-19", "2007-03-01", "2007-08-29", "2007-10-10", "2007-12-15", "2008-02-01", "2008-09-01"],
  "2009-04-04",
];
const LATEST = "latest";
const FOLDER = "openstack";
const CONTENT = "content";
/** How many digits an instance id of EC2 has. */
const INSTANCE_ID_DIGITS = 17;

/**
 * Answers a request for a path of the metadata service with the files of the guest's config drive, so that both say the same. Lists and the values in the form of
 * EC2 are as in Nova (nova/api/metadata/base.py: `lookup`, `ec2_md_print`), for what the config drive tells.
 */
export function answerMetadata(files: ReadonlyMap<string, Buffer>, path: string): MetadataAnswer {
  const [first = "", ...rest] = path.split("/").filter((name) => name !== "");
  if (first === "") return lines([...EC2_VERSIONS, LATEST]);
  if (first === FOLDER) return openstackAnswer(files, rest);
  const [version = "", ...names] = first === "ec2" ? rest : [first, ...rest];
  if (version === "") return lines([...EC2_VERSIONS, LATEST]);
  return [...EC2_VERSIONS, LATEST].includes(version) ? ec2Answer(files, names) : NOT_FOUND;
}

function openstackAnswer(files: ReadonlyMap<string, Buffer>, [version = "", ...names]: readonly string[]) {
  if (version === "") return lines([...OPENSTACK_VERSIONS, LATEST]);
  if (version === CONTENT) return ofFile(files.get(`${FOLDER}/${CONTENT}/${names.join("/")}`), "text/plain");
  if (![...OPENSTACK_VERSIONS, LATEST].includes(version)) return NOT_FOUND;
  const folder = `${FOLDER}/${LATEST}/`;
  if (names.length === 0)
    return lines([...files.keys()].filter((name) => name.startsWith(folder)).map((name) => name.slice(folder.length)));
  const name = names.join("/");
  return ofFile(files.get(`${folder}${name}`), name.endsWith(".json") ? "application/json" : "text/plain");
}

function ec2Answer(files: ReadonlyMap<string, Buffer>, names: readonly string[]): MetadataAnswer {
  const userData = files.get(`${FOLDER}/${LATEST}/user_data`);
  const [section = "", ...path] = names;
  if (section === "") return lines(["meta-data/", ...(userData === undefined ? [] : ["user-data"])]);
  if (section === "user-data") return path.length === 0 ? ofFile(userData, "text/plain") : NOT_FOUND;
  const document = files.get(`${FOLDER}/${LATEST}/meta_data.json`);
  if (section !== "meta-data" || document === undefined) return NOT_FOUND;
  const metadata = JSON.parse(document.toString("utf8")) as MetaData;
  let value: Ec2Value = ec2Values(metadata);
  for (const name of path) {
    const next: Ec2Value | undefined = typeof value === "string" ? undefined : value[name];
    if (next === undefined || !Object.hasOwn(value as object, name)) return NOT_FOUND;
    value = next;
  }
  if (typeof value === "string") return lines([value]);
  // The list of public keys has a form of its own.
  if (path.length === 1 && path[0] === PUBLIC_KEYS)
    return lines(keysOf(metadata).map(({ name }, at) => `${at}=${name}`));
  const listed = Object.entries(value).map(([name, one]) => (typeof one === "string" ? name : `${name}/`));
  return lines(listed.sort());
}

type Ec2Value = string | { readonly [name: string]: Ec2Value };

/** The fields of meta_data.json that the form of EC2 shows. */
interface MetaData {
  readonly uuid: string;
  readonly hostname: string;
  readonly launch_index: number;
  readonly availability_zone: string;
  readonly keys?: readonly { readonly name: string; readonly data: string }[];
}

const PUBLIC_KEYS = "public-keys";

function ec2Values(metadata: MetaData): { readonly [name: string]: Ec2Value } {
  const { uuid, hostname, launch_index: index, availability_zone: zone } = metadata;
  const keys = keysOf(metadata);
  return {
    "ami-launch-index": String(index),
    hostname,
    "instance-action": "none",
    // EC2's ids have this form. Nova counts its own, which are no secret; this one is the same wherever the server is.
    "instance-id": `i-${uuid.replaceAll("-", "").slice(0, INSTANCE_ID_DIGITS)}`,
    "local-hostname": hostname,
    placement: { "availability-zone": zone },
    "public-hostname": hostname,
    ...(keys.length > 0 && {
      [PUBLIC_KEYS]: Object.fromEntries(keys.map(({ data }, position) => [position, { "openssh-key": data }])),
    }),
  };
}

const keysOf = ({ keys = [] }: MetaData) => keys;

const NOT_FOUND: MetadataAnswer = { status: 404, contentType: "text/plain", body: Buffer.from("404 Not Found\n") };

const lines = (texts: readonly string[]): MetadataAnswer => ({
  ...{ status: 200, contentType: "text/plain", body: Buffer.from(texts.join("\n")) },
});

const ofFile = (body: Buffer | undefined, contentType: string): MetadataAnswer =>
  body === undefined ? NOT_FOUND : { status: 200, contentType, body };
