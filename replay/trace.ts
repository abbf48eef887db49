/** A machine of a trace, with its whole capacity. */
export interface Machine {
  readonly name: string;
  readonly cpuMilli: number;
  readonly memoryMib: number;
  readonly gpus: number;
  /** Empty when the machine has no GPU. */
  readonly gpuModel: string;
}

/** A task of a trace: its demands, and its begin and end in seconds since the trace began. */
export interface TraceTask {
  readonly name: string;
  readonly cpuMilli: number;
  readonly memoryMib: number;
  readonly gpus: number;
  /** Thousandths of each of its GPUs: 1000 unless it shares one, 0 without a GPU. */
  readonly gpuMilli: number;
  /** GPU models on which the task may run; empty for any. */
  readonly gpuModels: readonly string[];
  readonly createdAt: number;
  readonly deletedAt: number;
}

export interface Trace {
  readonly machines: readonly Machine[];
  readonly tasks: readonly TraceTask[];
}

/** A line of a trace is invalid. The first one ends the reading. */
export class TraceError extends Error {
  readonly file: string;
  /** Number of the line: 1 is the header, and 0 means the file as a whole. */
  readonly line: number;

  constructor(file: string, line: number, message: string) {
    super(line === 0 ? `${file}: ${message}` : `${file}:${line}: ${message}`);
    this.name = "TraceError";
    this.file = file;
    this.line = line;
  }
}
