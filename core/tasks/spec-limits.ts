/** The largest encoded spec that is accepted. A server's task carries the spec to its cell in one message of at most 1 MiB. */
export const SPEC_BYTES_MAX = 262_144;
/**
 * A larger stored spec is not placed, because the message of its task would be refused. Only versions before `SPEC_BYTES_MAX` stored such
 * specs, and the distance between the two limits leaves room for them.
 */
export const STORED_SPEC_BYTES_MAX = 786_432;
