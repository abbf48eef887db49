import { expect, test } from "vitest";
import { mountedFile } from "./mounted-volumes.ts";

const ID = "0f1e2d3c-0000-4000-8000-000000000001";
const nfs = (fields: object = {}) =>
  JSON.stringify({
    driver_volume_type: "nfs",
    export: "storage:/volumes",
    name: `volume-${ID}`,
    format: "raw",
    ...fields,
  });
const local = (device_path: string) => JSON.stringify({ driver_volume_type: "local", device_path });
const find = (connection: string, mounts: string | null = "/mnt") => mountedFile(ID, connection, mounts);

test("a volume on an NFS export is a file below the directory that Nova and Cinder mount the export under", () => {
  // printf storage:/volumes | md5sum
  const path = `/mnt/15f25b5099e7994a5e5c5f71eeb39950/volume-${ID}`;
  expect(find(nfs({ format: "qcow2" }))).toEqual({ path, format: "qcow2" });
  expect(find(nfs({ format: undefined })).format).toBe("raw");
});

test("the file of a snapshot is a qcow2 file, whatever Cinder says of the volume's first one", () => {
  const other = "0f1e2d3c-0000-4000-8000-000000000002";
  for (const name of [`volume-${ID}.${other}`, `volume-${ID}.tmp-snap-${other}`])
    expect(find(nfs({ name })).format).toBe("qcow2");
  expect(find(local(`/mnt/a/volume-${ID}.${other}`)).format).toBe("qcow2");
  // A template of names in which the volume's own id stands behind a dot.
  expect(find(nfs({ name: `vol.${ID}` })).format).toBe("raw");
  expect(find(nfs({ name: `volume-${ID}.old` })).format).toBe("raw");
});

test("a local path is used below the directory of exports alone", () => {
  expect(find(local("/mnt/disks/one"))).toEqual({ path: "/mnt/disks/one", format: "raw" });
  for (const path of ["/etc/shadow", "/mnt/../etc/shadow", "/mntother/one", "/mnt"])
    expect(() => find(local(path)), path).toThrow("which is not below /mnt");
});

test.each([
  [nfs({ name: "../../etc/shadow" }), "names no export and file"],
  [nfs({ name: "." }), "names no export and file"],
  [nfs({ export: 1 }), "names no export and file"],
  [nfs({ format: "vmdk" }), 'has the format "vmdk"; supported: raw, qcow2'],
  [JSON.stringify({ driver_volume_type: "iscsi", auth_password: "secret" }), 'connected by "iscsi", which'],
  ["{", 'connected by "undefined", which'],
  ["null", 'connected by "undefined", which'],
])("the connection %s is refused, and its secrets are not told", (connection, why) => {
  expect(() => find(connection)).toThrow(why);
  expect(() => find(connection)).not.toThrow("secret");
});

test("a host without a directory of exports says what to set", () => {
  expect(() => find(nfs(), null)).toThrow("--volume-mounts");
});
