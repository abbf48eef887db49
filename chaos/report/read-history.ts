import type { HistoryLine } from "../history-line.ts";
import { faultOfLine } from "./line-schema.ts";

/** A text that is not a history of a chaos run. */
export class HistoryError extends Error {
  /** Number of the faulty line, counted from 1; null when the error concerns the whole text. */
  readonly line: number | null;

  constructor(line: number | null, message: string) {
    super(line === null ? message : `line ${line}: ${message}`);
    this.name = "HistoryError";
    this.line = line;
  }
}

/**
 * Parses the lines of a history (JSON lines). A last line that was cut off in the middle of a write is ignored. Any other line that is not
 * valid throws a HistoryError, which names it.
 */
export function readHistory(text: string): readonly HistoryLine[] {
  const texts = text.split("\n");
  // The text after the last line break is empty, or an incomplete line whose writer died.
  const rest = texts.pop() ?? "";
  const lines = texts.flatMap((line, index) => (line.trim() === "" ? [] : [parseLine(line, index + 1)]));
  if (rest.trim() !== "") {
    try {
      lines.push(parseLine(rest, texts.length + 1));
    } catch (error) {
      if (lines.length === 0) throw error;
    }
  }
  if (lines.length === 0) throw new HistoryError(null, "the history is empty");
  return lines;
}

function parseLine(text: string, number: number): HistoryLine {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    throw new HistoryError(number, "the line is not JSON");
  }
  const fault = faultOfLine(parsed);
  if (fault !== null) throw new HistoryError(number, fault);
  return parsed as HistoryLine;
}
