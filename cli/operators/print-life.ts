import { tableOf } from "../../runtime/print-table.ts";
import type { ShownLife } from "./life-answer.ts";
import { eventsOf } from "./life-events.ts";
import { oneLine } from "./one-line.ts";
import { decisionsText } from "./print-explanation.ts";

/**
 * Formats one server's whole life for people: its place, the time line, what is under way, what could not be read, and the decisions in
 * full.
 */
export function lifeText(life: ShownLife): string {
  const parts = [headText(life)];
  const events = eventsOf(life);
  if (events.length > 0)
    parts.push(tableOf([["TIME", "WHAT", ""], ...events.map(({ at, what, text }) => [at, what, oneLine(text)])]));
  if (life.waits.length > 0) parts.push(listText("Awaited now:", life.waits));
  if (life.missing.length > 0) parts.push(listText("Not known:", life.missing));
  if (life.decisions.length > 0) parts.push(decisionsText(life));
  if (life.dashboard !== null) parts.push(`In a browser: ${life.dashboard}\n`);
  return parts.join("\n");
}

function headText({ server, name, cell, state, request }: ShownLife): string {
  const head = `server ${server}${name === null ? "" : ` (${name})`}\n`;
  const where = cell === null ? "in no cell" : `in cell ${cell}`;
  if (state === null) {
    const status = request === null ? "its status is not known" : `its request is ${request.state}`;
    return `${head}${status}, ${where}\n${request?.fault ? `fault: ${oneLine(request.fault)}\n` : ""}`;
  }
  const { status, task_state, host, fault } = state;
  const doing = task_state === null ? "" : ` (${task_state})`;
  const place = host === null ? `on no host ${where}` : `on ${host} ${where}`;
  const why = fault === null ? "" : `fault at ${fault.at}: ${oneLine(fault.message)}\n${nextText(fault)}`;
  return `${head}${status}${doing}, ${place}\n${why}`;
}

/** Apis of earlier versions name no next step. */
const nextText = ({ next_step }: NonNullable<NonNullable<ShownLife["state"]>["fault"]>): string =>
  next_step ? `what to do: ${oneLine(next_step)}\n` : "";

function listText(title: string, sentences: readonly string[]): string {
  return `${title}\n${sentences.map((sentence) => `- ${oneLine(sentence)}\n`).join("")}`;
}
