import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** Reading a large image takes as long as its decompression. */
const READ_MS = 10 * 60_000;
const COMPLAINT_CHARS_MAX = 4_096;
/** Complaints of tar about this host, not about the content of the file. */
const HOSTS_FAULT = /Cannot (open|read|fork|exec)|Input\/output error|memory|not found|No such file/i;

/**
 * Says what keeps a file from being a unified tarball of LXD (`metadata.yaml` and `rootfs/`), on any host. Null if nothing does, and also if it cannot be
 * found out here. LXD's own errors do not tell a broken image from a host that cannot read it or has no room.
 */
export async function whyNoTarball(path: string, signal: AbortSignal): Promise<string | null> {
  const listing = spawn("tar", ["--list", "--force-local", "--file", path], {
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
  for await (const name of createInterface({ input: listing.stdout })) {
    has.metadata ||= /^(\.\/)?metadata\.yaml$/.test(name);
    has.rootfs ||= /^(\.\/)?rootfs(\/|$)/.test(name);
  }
  const code = await ended;
  signal.throwIfAborted();
  if (code === null || (code !== 0 && HOSTS_FAULT.test(complaint))) return null;
  if (code !== 0) return `it is no whole tarball (${complaint.trim().split("\n")[0]?.slice(0, 200)})`;
  const missing = [has.metadata ? [] : ["metadata.yaml"], has.rootfs ? [] : ["rootfs/"]].flat();
  return missing.length === 0 ? null : `it is no unified tarball of LXD: ${missing.join(" and ")} is not in it`;
}
