import { spawn } from "node:child_process";

/** Reading a large image takes as long as its decompression. */
const READ_MS = 10 * 60_000;
const COMPLAINT_CHARS_MAX = 4_096;
/** The author of an image may give it names of any length. Only their beginnings matter, and only these are kept. */
const NAME_CHARS_MAX = 64;
/** Kibibytes of memory that tar and the decompression may take: tar keeps each name as a whole, several times. */
const MEMORY_KIB_MAX = 1 << 20;
/** Complaints of tar about this host, not about the content of the file. */
const HOSTS_FAULT = /Cannot (open|read|fork|exec)|died with signal|Input\/output error|memory|not found|No such file/i;

/**
 * Says what keeps a file from being a unified tarball of LXD (`metadata.yaml` and `rootfs/`), on any host. Null if nothing does, and also if it cannot be
 * found out here. LXD's own errors do not tell a broken image from a host that cannot read it or has no room.
 */
export async function whyNoTarball(path: string, signal: AbortSignal): Promise<string | null> {
  const bounded = `ulimit -v ${MEMORY_KIB_MAX} 2>/dev/null; exec tar "$@"`;
  const listing = spawn("sh", ["-c", bounded, "tar", "--list", "--force-local", "--file", path], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env.PATH ?? "", LC_ALL: "C" },
    signal: AbortSignal.any([signal, AbortSignal.timeout(READ_MS)]),
  });
  const ended = new Promise<number | null>((resolve) => {
    listing.once("close", resolve).once("error", () => resolve(null));
  });
  let complaint = "";
  listing.stderr.setEncoding("utf8").on("data", (text: string) => {
    complaint = (complaint + text).slice(-COMPLAINT_CHARS_MAX);
  });
  const has = { metadata: false, rootfs: false };
  const see = (name: string): void => {
    has.metadata ||= /^(\.\/)?metadata\.yaml$/.test(name);
    has.rootfs ||= /^(\.\/)?rootfs(\/|$)/.test(name);
  };
  let name = "";
  listing.stdout.setEncoding("latin1").on("data", (text: string) => {
    const [rest = "", ...further] = text.split("\n");
    name += rest.slice(0, NAME_CHARS_MAX - name.length);
    for (const next of further) {
      see(name);
      name = next.slice(0, NAME_CHARS_MAX);
    }
  });
  const code = await ended;
  signal.throwIfAborted();
  if (code === null || (code !== 0 && HOSTS_FAULT.test(complaint))) return null;
  if (code !== 0) return `it is no whole tarball (${complaint.trim().split("\n")[0]?.slice(0, 200)})`;
  const missing = [has.metadata ? [] : ["metadata.yaml"], has.rootfs ? [] : ["rootfs/"]].flat();
  return missing.length === 0 ? null : `it is no unified tarball of LXD: ${missing.join(" and ")} is not in it`;
}
