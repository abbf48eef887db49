import type { ExecFileException } from "node:child_process";
import { open, readFile, rm } from "node:fs/promises";
import { formatOf, HEADER_BYTES, judgeQcow2, qcow2BytesOf } from "../../runtime/disk-header.ts";
import { QemuError } from "./qemu-error.ts";
import { runTool } from "./run-tool.ts";

export type ImageFormat = "qcow2" | "raw";

/** The facts about an image that decide whether a guest's disk can be built on it. */
export interface ImageFacts {
  readonly format: ImageFormat;
  /** Size of the disk that a guest sees, in bytes. */
  readonly virtualBytes: number;
}

/**
 * What qemu-img says at the end of a line when the host is at fault and not the image: the reasons of the system for a call that failed. A
 * copy that was just written and hashed can be read, so anything else that it complains about is in the image.
 */
const HOST_FAULT =
  /: (?:Input\/output error|No space left on device|Disk quota exceeded|Cannot allocate memory|Too many open files(?: in system)?|Permission denied|Operation not permitted|No such file or directory|Stale file handle|Resource temporarily unavailable|Transport endpoint is not connected)$/m;

/**
 * Looks at an image before anything is built on it. Throws a QemuError (final) for an image that refers to other files, such as a backing file
 * or an external data file: a user who uploads it could read the host's files (Nova: LP 2059809). QEMU is always told the format and never
 * guesses it. Its tools see no image whose header is refused. A complaint of theirs about the image is final, too: every other host would hear it.
 */
export async function inspectImage(path: string, declared: ImageFormat | null): Promise<ImageFacts> {
  const header = await headerOf(path);
  const format = usableFormatOf(header);
  if (declared !== null && declared !== format)
    throw unusable(`it was declared as ${declared}, but its content is ${format}`);
  const judged = format === "qcow2" ? judgeQcow2(header) : null;
  if (judged !== null && "refused" in judged) throw new QemuError("image", judged.refused, { isFinal: true });
  const info = parseInfo(
    await runTool("qemu-img", ["info", "--output=json", "-f", format, path]).catch((error: unknown) => {
      throw complaintAboutImage(error) ?? error;
    }),
  );
  if (info["backing-filename"] !== undefined) throw unusable("it has a backing file");
  const specific = (info["format-specific"] as { readonly data?: Readonly<Record<string, unknown>> } | undefined)?.data;
  if (specific?.["data-file"] !== undefined) throw unusable("it keeps its data in another file");
  if (specific?.encrypt !== undefined || info.encrypted === true) throw unusable("it is encrypted");
  const virtualBytes = info["virtual-size"];
  if (typeof virtualBytes !== "number" || !Number.isSafeInteger(virtualBytes)) throw unusable("it has no size");
  return { format, virtualBytes };
}

/** Creates a qcow2 image. With `base` it holds only what differs from that image, which must stay unchanged. */
export async function createDisk(
  path: string,
  bytes: number,
  base: { readonly path: string; readonly format: ImageFormat } | null,
): Promise<void> {
  const backing = base === null ? [] : ["-b", base.path, "-F", base.format];
  await runTool("qemu-img", ["create", "-q", "-f", "qcow2", ...backing, path, String(bytes)]);
}

/** The content of a qcow2 file for a disk of this size to which nothing was written. `scratch` is a path at which it may be made; nothing is left there. */
export async function emptyDisk(scratch: string, bytes: number): Promise<Buffer> {
  await rm(scratch, { force: true });
  try {
    await createDisk(scratch, bytes, null);
    return await readFile(scratch);
  } finally {
    await rm(scratch, { force: true });
  }
}

/** The size of the disk that a guest sees in a qcow2 file that Berth made. */
export async function virtualBytesOf(path: string): Promise<number> {
  const virtualBytes = qcow2BytesOf(await headerOf(path));
  if (virtualBytes === null) throw new QemuError("storage", `${path} is no disk in the format qcow2`);
  return virtualBytes;
}

async function headerOf(path: string): Promise<Buffer> {
  const file = await open(path);
  try {
    const header = Buffer.alloc(HEADER_BYTES);
    const { bytesRead } = await file.read(header, 0, HEADER_BYTES, 0);
    return header.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

function usableFormatOf(header: Buffer): ImageFormat {
  const format = formatOf(header) ?? "raw";
  if (format === "qcow2" || format === "raw") return format;
  throw unusable(`it is a ${format.toUpperCase()} image; allowed: qcow2, raw`);
}

/** The final error if qemu-img ended by itself and complained about the image, or printed more than Berth reads. Null if the host may be at fault. */
function complaintAboutImage(error: unknown): QemuError | null {
  if (!(error instanceof QemuError)) return null;
  const { code, signal, stderr } = (error.cause ?? {}) as ExecFileException;
  const complaints = String(stderr ?? "").trim();
  if (code === "ERR_CHILD_PROCESS_STDIO_MAXBUFFER")
    return unusable("its description is longer than Berth reads", error);
  const hasEnded = typeof code === "number" && (signal ?? null) === null;
  return hasEnded && complaints !== "" && !HOST_FAULT.test(complaints) ? unusable(error.message, error) : null;
}

function parseInfo(text: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch (error) {
    throw new QemuError(
      "image",
      "the image cannot be used: qemu-img did not describe it in a form that Berth can read",
      { cause: error },
    );
  }
}

const unusable = (why: string, cause?: unknown): QemuError =>
  new QemuError("image", `the image cannot be used: ${why}`, { isFinal: true, cause });
