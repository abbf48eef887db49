import type { Duplex } from "node:stream";

/** One whole picture of a display. Four bytes a pixel: blue, green, red, and one unused. */
export interface Frame {
  readonly title: string;
  readonly width: number;
  readonly height: number;
  readonly pixels: Buffer;
}

/** True colour, 32 bits a pixel, little-endian, red in the third byte; and three bytes of padding. */
const PIXELS = Buffer.from([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0]);

/** A client of a display, which speaks RFB 3.8 (RFC 6143) without a password and with raw pictures. */
export class RfbClient {
  readonly #stream: Duplex;
  readonly #chunks: AsyncIterator<Buffer>;
  #input = Buffer.alloc(0);
  #title = "";
  #width = 0;
  #height = 0;

  constructor(stream: Duplex) {
    this.#stream = stream;
    // A connection that is lost ends the iteration; the test looks at what came before.
    stream.on("error", () => undefined);
    this.#chunks = stream[Symbol.asyncIterator]();
  }

  /** Agrees with the server about everything up to the first picture. */
  async open(): Promise<void> {
    const version = String(await this.#read(12));
    if (version !== "RFB 003.008\n") throw new Error(`the server says ${JSON.stringify(version)} instead of RFB 3.8`);
    this.#stream.write(version);
    const types = await this.#read((await this.#read(1))[0] ?? 0);
    if (!types.includes(1)) throw new Error(`the server wants a password (${types.toString("hex")})`);
    this.#stream.write(Buffer.from([1]));
    if ((await this.#read(4)).readUInt32BE() !== 0) throw new Error("the server refuses the client");
    this.#stream.write(Buffer.from([1]));
    const head = await this.#read(24);
    [this.#width, this.#height] = [head.readUInt16BE(0), head.readUInt16BE(2)];
    this.#title = String(await this.#read(head.readUInt32BE(20)));
    const raw = Buffer.from([2, 0, 0, 1, 0, 0, 0, 0]);
    this.#stream.write(Buffer.concat([Buffer.from([0, 0, 0, 0]), PIXELS, raw]));
  }

  /** The display as it is now; or as it is after its next change. */
  async frame({ afterChange = false } = {}): Promise<Frame> {
    const [width, height] = [this.#width, this.#height];
    const request = Buffer.from([3, afterChange ? 1 : 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    request.writeUInt16BE(width, 6);
    request.writeUInt16BE(height, 8);
    this.#stream.write(request);
    const pixels = Buffer.alloc(width * height * 4);
    const head = await this.#read(4);
    if (head[0] !== 0) throw new Error(`the server sent a message of type ${head[0]} instead of a picture`);
    for (let index = 0; index < head.readUInt16BE(2); index += 1) {
      const rectangle = await this.#read(12);
      const [x, y, w, h] = [0, 2, 4, 6].map((at) => rectangle.readUInt16BE(at)) as [number, number, number, number];
      if (rectangle.readInt32BE(8) !== 0) throw new Error("the picture is not raw");
      for (let row = 0; row < h; row += 1) (await this.#read(w * 4)).copy(pixels, ((y + row) * width + x) * 4);
    }
    return { title: this.#title, width, height, pixels };
  }

  /** Presses and releases a key (its keysym). */
  press(key: number): void {
    for (const isDown of [1, 0]) {
      const event = Buffer.from([4, isDown, 0, 0, 0, 0, 0, 0]);
      event.writeUInt32BE(key, 4);
      this.#stream.write(event);
    }
  }

  /** Resolves when the connection has ended. */
  async ended(): Promise<void> {
    while (await this.#more()) this.#input = Buffer.alloc(0);
  }

  close(): void {
    this.#stream.destroy();
  }

  async #read(length: number): Promise<Buffer> {
    while (this.#input.length < length) if (!(await this.#more())) throw new Error("the connection has ended");
    const read = this.#input.subarray(0, length);
    this.#input = this.#input.subarray(length);
    return read;
  }

  async #more(): Promise<boolean> {
    const next = await this.#chunks.next().catch(() => null);
    if (next === null || next.done === true) return false;
    this.#input = Buffer.concat([this.#input, next.value]);
    return true;
  }
}
