import { connect, type Socket } from "node:net";

const READ_BYTES = 1 << 18;
const TIMEOUT_MS = 120_000;
const HEAD_END = "\r\n\r\n";

export interface Received {
  readonly status: number;
  /** Empty unless the caller asked to keep the body. */
  readonly text: string;
}

interface Pending {
  readonly keepBody: boolean;
  readonly resolve: (received: Received) => void;
  readonly reject: (error: Error) => void;
}

/**
 * One keep-alive connection, with one request at a time, which does as little work as HTTP permits, because the load generator shares the
 * machine with the measured server. It is opened at the first request, and again when the server has closed it. Answers must state their
 * length, as those of both servers do.
 */
export class Connection {
  readonly #host: string;
  readonly #port: number;
  #socket: Socket | null = null;
  #pending: Pending | null = null;
  /** The part of an incomplete head that has arrived. */
  #head = "";
  #status = 0;
  /** Number of bytes of the body still to come, or -1 while the head is incomplete. */
  #left = -1;
  #closes = false;
  #body: Buffer[] = [];

  constructor(url: URL) {
    this.#host = url.hostname;
    this.#port = Number(url.port);
  }

  /** Sends the text of a whole request. The body of the answer is always read, but kept only on request. */
  request(text: string, keepBody: boolean): Promise<Received> {
    return new Promise((resolve, reject) => {
      this.#pending = { keepBody, resolve, reject };
      this.#socket ??= this.#open();
      this.#socket.write(text);
    });
  }

  close(): void {
    this.#socket?.destroy();
    this.#socket = null;
  }

  #open(): Socket {
    const onread = { buffer: Buffer.allocUnsafe(READ_BYTES), callback: this.#read.bind(this) };
    const socket = connect({ host: this.#host, port: this.#port, noDelay: true, onread });
    const lost = (error?: Error): void => {
      if (this.#socket === socket) this.#socket = null;
      this.#pending?.reject(error ?? new Error("the server closed the connection before it had answered"));
      this.#pending = null;
    };
    socket.setTimeout(TIMEOUT_MS, () => socket.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)));
    return socket.on("error", lost).on("close", () => lost());
  }

  #read(length: number, buffer: Uint8Array): boolean {
    let bytes = Buffer.from(buffer.buffer, buffer.byteOffset, length);
    if (this.#left < 0) {
      const before = this.#head.length;
      this.#head += bytes.toString("latin1");
      const end = this.#head.indexOf(HEAD_END);
      if (end < 0) return true;
      this.#readHead(this.#head.slice(0, end));
      this.#head = "";
      bytes = bytes.subarray(end + HEAD_END.length - before);
    }
    this.#left -= bytes.length;
    if (this.#pending?.keepBody && bytes.length > 0) this.#body.push(Buffer.from(bytes));
    if (this.#left <= 0) this.#answer();
    return true;
  }

  #readHead(head: string): void {
    this.#status = Number(head.slice(9, 12));
    this.#left = Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
    this.#closes = /\r\nconnection: *close/i.test(head);
  }

  #answer(): void {
    const { resolve } = this.#pending!;
    const received = {
      status: this.#status,
      text: this.#body.length === 0 ? "" : Buffer.concat(this.#body).toString(),
    };
    this.#pending = null;
    this.#left = -1;
    this.#body = [];
    if (this.#closes) this.close();
    resolve(received);
  }
}
