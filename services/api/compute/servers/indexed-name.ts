/**
 * What a text needs to be found by the index of names, whose entries are three letters or digits each. The search for another text would
 * read all rows in one statement.
 */
const INDEXED_TEXT = /[\p{L}\p{N}]{3}/u;

/** Whether an index finds servers by this text in their names. */
export const isIndexedName = (text: string | null): boolean => text !== null && INDEXED_TEXT.test(text);
