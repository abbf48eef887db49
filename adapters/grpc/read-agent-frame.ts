import { BinaryReader } from "@bufbuild/protobuf/wire";
import { AgentFrame } from "../../proto/gen/berth/agent.ts";

/** Numbers, of fields and of lengths, that a frame of any size may have: a provider tree of the greatest accepted size has fewer. */
const NUMBERS_FREE = 300_000;
/** A guest, of which large frames consist, has a number for each seven bytes or so. */
const BYTES_PER_NUMBER = 6;

/**
 * Decodes what an agent has sent. Throws when the bytes are no frame, and when they consist of more and smaller parts than any agent's
 * messages: an empty message takes two bytes on the wire and a hundred in memory, so without this bound one frame of an agent could take
 * the conductor gigabytes and half a minute, in which no other agent is heard.
 */
export function readAgentFrame(bytes: Buffer): AgentFrame {
  return AgentFrame.decode(new BoundedReader(bytes, NUMBERS_FREE + bytes.length / BYTES_PER_NUMBER));
}

/** A reader that throws after a given number of tags and lengths. The generated code reads these, and these alone, with `uint32`. */
class BoundedReader extends BinaryReader {
  constructor(bytes: Uint8Array, numbersMax: number) {
    super(bytes);
    // An own property in the base class, too.
    const read = this.uint32;
    let count = 0;
    this.uint32 = () => {
      count += 1;
      if (count > numbersMax)
        throw new Error(
          `a frame of ${bytes.length} bytes has more than ${Math.floor(numbersMax)} fields: no agent sends such`,
        );
      return read.call(this);
    };
  }
}
