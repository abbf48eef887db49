import { Duplex } from "node:stream";

const WIDTH = 32;
const HEIGHT = 24;
const VERSION = Buffer.from("RFB 003.008\n");
/** One security type is offered: None. The client has already proved that it may see the guest. */
const SECURITY = Buffer.from([1, 1]);
const SECURITY_OK = Buffer.alloc(4);
/** 32 bits a pixel, of which 24 are colour; little-endian; true colour with 8 bits each of red, green and blue. */
const PIXELS = Buffer.from([32, 24, 0, 1, 0, 255, 0, 255, 0, 255, 16, 8, 0, 0, 0, 0]);
/** The bytes of a pixel format before the shifts of its colours. Clients choose the shifts: noVNC wants red in the lowest byte. */
const SHIFTS_AT = 10;
const BYTES_OF_PIXEL = 4;
/** A client may paste this much. */
const CUT_TEXT_MAX = 65_536;
/** The lengths of a client's messages by their first byte (RFC 6143, 7.5). Those with a list say its length themselves. */
const MESSAGE = { format: 0, encodings: 2, update: 3, key: 4, pointer: 5, cutText: 6 } as const;

/**
 * A display of the fake driver: a real RFB server (RFC 6143) of a small picture. The picture is a gradient, and is inverted by each
 * key that is pressed. Pixels have 32 bits, and a client that asks for others is disconnected.
 */
export class FakeDisplay extends Duplex {
  readonly #name: Buffer;
  #input: Buffer = Buffer.alloc(0);
  #next: (input: Buffer) => number;
  #shifts: PixelShifts = shiftsOf(PIXELS);
  #keys = 0;
  /** The number of keys that had been pressed when the client last got the picture. */
  #shown = -1;
  #waits = false;

  /** `name` is the title that clients show. */
  constructor(name: string) {
    super();
    this.#name = Buffer.from(name);
    this.#next = (input) => this.#version(input);
    this.push(VERSION);
  }

  override _read(): void {}

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    this.#input = Buffer.concat([this.#input, chunk]);
    try {
      for (;;) {
        const used = this.#next(this.#input);
        if (used === 0) break;
        this.#input = this.#input.subarray(used);
      }
      done();
    } catch (error) {
      done(error as Error);
    }
  }

  override _final(done: () => void): void {
    this.push(null);
    done();
  }

  /** Each of these reads one message from the start of the input. Returns the bytes that it used, or 0 when the message has not arrived whole. */
  #version(input: Buffer): number {
    if (input.length < VERSION.length) return 0;
    if (!input.subarray(0, VERSION.length).equals(VERSION)) throw new Error("the client does not speak RFB 3.8");
    this.push(SECURITY);
    this.#next = (more) => this.#security(more);
    return VERSION.length;
  }

  #security(input: Buffer): number {
    if (input.length < 1) return 0;
    if (input[0] !== 1) throw new Error("the client wants a security type that was not offered");
    this.push(SECURITY_OK);
    this.#next = (more) => this.#init(more);
    return 1;
  }

  /** The client's byte says whether it shares the display with others. */
  #init(input: Buffer): number {
    if (input.length < 1) return 0;
    const size = Buffer.from([0, WIDTH, 0, HEIGHT]);
    const length = Buffer.alloc(4);
    length.writeUInt32BE(this.#name.length);
    this.push(Buffer.concat([size, PIXELS, length, this.#name]));
    this.#next = (more) => this.#message(more);
    return 1;
  }

  #message(input: Buffer): number {
    const length = lengthOf(input);
    if (length === 0 || input.length < length) return 0;
    switch (input[0]) {
      case MESSAGE.format:
        // The last three bytes are padding.
        if (!input.subarray(4, 4 + SHIFTS_AT).equals(PIXELS.subarray(0, SHIFTS_AT)))
          throw new Error("the client wants pixels of another format");
        this.#shifts = shiftsOf(input.subarray(4));
        break;
      case MESSAGE.update:
        this.#waits = true;
        if (input[1] === 0) this.#shown = -1;
        break;
      case MESSAGE.key:
        if (input[1] === 1) this.#keys += 1;
        break;
    }
    this.#show();
    return length;
  }

  /** Sends the picture if the client waits for it and has not seen it. */
  #show(): void {
    if (!this.#waits || this.#shown === this.#keys) return;
    this.#waits = false;
    this.#shown = this.#keys;
    // One rectangle, raw.
    const head = Buffer.from([0, 0, 0, 1, 0, 0, 0, 0, 0, WIDTH, 0, HEIGHT, 0, 0, 0, 0]);
    this.push(Buffer.concat([head, picture(this.#keys % 2 === 1, this.#shifts)]));
  }
}

type PixelShifts = readonly [red: number, green: number, blue: number];

const shiftsOf = (format: Buffer): PixelShifts => [
  format[SHIFTS_AT] ?? 0,
  format[SHIFTS_AT + 1] ?? 0,
  format[SHIFTS_AT + 2] ?? 0,
];

/** The length of the first message of the input, or 0 when too little of it has arrived to tell. */
function lengthOf(input: Buffer): number {
  switch (input[0]) {
    case undefined:
      return 0;
    case MESSAGE.format:
      return 20;
    case MESSAGE.encodings:
      return input.length < 4 ? 0 : 4 + 4 * input.readUInt16BE(2);
    case MESSAGE.update:
      return 10;
    case MESSAGE.key:
      return 8;
    case MESSAGE.pointer:
      return 6;
    case MESSAGE.cutText: {
      const text = input.length < 8 ? 0 : input.readUInt32BE(4);
      if (text > CUT_TEXT_MAX) throw new Error(`the client pastes more than ${CUT_TEXT_MAX} bytes`);
      return input.length < 8 ? 0 : 8 + text;
    }
    default:
      throw new Error(`the client sent a message of the unknown type ${input[0]}`);
  }
}

function picture(isInverted: boolean, [redAt, greenAt, blueAt]: PixelShifts): Buffer {
  const pixels = Buffer.alloc(WIDTH * HEIGHT * BYTES_OF_PIXEL);
  for (let at = 0; at < WIDTH * HEIGHT; at += 1) {
    const [red, green] = [(at % WIDTH) * 8, Math.floor(at / WIDTH) * 10];
    const shade = (light: number): number => (isInverted ? 0xff - light : light);
    const colour = (shade(red) << redAt) | (shade(green) << greenAt) | (shade(0x80) << blueAt);
    pixels.writeUInt32LE(colour >>> 0, at * BYTES_OF_PIXEL);
  }
  return pixels;
}
