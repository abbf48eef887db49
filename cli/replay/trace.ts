/** A machine of a trace: what it has, before any task. */
export interface Machine {
  readonly name: string;
  readonly cpuMilli: number;
  readonly memoryMib: number;
  readonly gpus: number;
  /** Empty when it has no GPU. */
  readonly gpuModel: string;
}

/** A task of a trace: what it takes, and from when to when (seconds since the trace began). */
export interface TraceTask {
  readonly name: string;
  readonly cpuMilli: number;
  readonly memoryMib: number;
  readonly gpus: number;
  /** Of each of its GPUs, in thousandths: 1000 unless it shares one. 0 without a GPU. */
  readonly gpuMilli: number;
  /** Models that it may run on; empty: any. */
  readonly gpuModels: readonly string[];
  readonly createdAt: number;
  readonly deletedAt: number;
}

export interface Trace {
  readonly machines: readonly Machine[];
  readonly tasks: readonly TraceTask[];
}

/** A line of a trace that cannot be used; the first one ends the reading. */
export class TraceError extends Error {
  readonly file: string;
  /** 1 is the header; 0: the file itself. */
  readonly line: number;

  constructor(file: string, line: number, message: string) {
    super(line === 0 ? `${file}: ${message}` : `${file}:${line}: ${message}`);
    this.name = "TraceError";
    this.file = file;
    this.line = line;
  }
}
