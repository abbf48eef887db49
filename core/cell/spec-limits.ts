/** A server's encoded spec may be this large when it is accepted. Its task carries it to the cell in one message of at most 1 MiB. */
export const SPEC_BYTES_MAX = 262_144;
/**
 * A stored spec that is larger is not placed: the message of its task would be refused. Only versions before `SPEC_BYTES_MAX` stored any;
 * the room between the two limits is for theirs.
 */
export const STORED_SPEC_BYTES_MAX = 786_432;
