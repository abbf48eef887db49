import { randomInt } from "node:crypto";
import { cellConsolesSubject } from "../../adapters/nats/streams.ts";
import type {
  ConductorMessage,
  ConsoleOpened,
  ConsoleOutput,
  DiagnosticsRead,
  InterfacesSet,
  PasswordChanged,
  PinningRead,
} from "../../proto/gen/berth/agent.ts";
import { ConsoleAnswer, ConsoleQuestion } from "../../proto/gen/berth/cell.ts";
import type { Subscription } from "../../runtime/bus.ts";
import type { Clock } from "../../runtime/clock.ts";
import { withDeadline } from "../../runtime/deadline.ts";
import { encodeMessage } from "../../runtime/encode-message.ts";
import type { AgentConnection, AgentRegistry } from "./agent-registry.ts";
import type { ConductorEvents } from "./events.ts";
import type { ConductorBus } from "./ports.ts";

const ANSWER_MS = 4_000;
/** A guest may need some seconds to release an interface, or to change a password. */
const CHANGE_MS = 18_000;
/** How many questions of each kind may wait for agents at a time. One kind reads, and each of its answers may have `BYTES_MAX`; the other changes guests. */
const OPEN_MAX = 64;
const BYTES_MAX = 131_072;
/** The bus carries answers of up to 1 MiB, and no honest agent needs more than this. */
const ANSWER_BYTES_MAX = 262_144;
const TEXT_CHARACTERS_MAX = 1_000;
/** Query ids are random, so that an agent cannot answer a query that it was not sent. */
const QUERY_MAX = 2 ** 47;

type Told = ConsoleOutput | ConsoleOpened | PinningRead | DiagnosticsRead | InterfacesSet | PasswordChanged;

interface Query {
  readonly connection: AgentConnection;
  readonly host: string;
  readonly isChange: boolean;
  readonly resolve: (told: Told) => void;
}

/**
 * Answers the api's questions about guests that only their hosts can answer, by asking the hosts' agents: to read a console, to open one for a client,
 * which CPUs a guest has, or what it uses. It also passes on which interfaces or password a guest is to have. Nothing is stored, and the cell's tasks do not depend
 * on it.
 */
export class ConsoleAsker {
  readonly #options: {
    readonly bus: ConductorBus;
    readonly cell: string;
    readonly clock: Clock;
    readonly events: ConductorEvents;
    readonly registry: Pick<AgentRegistry, "connectionOf">;
  };
  readonly #queries = new Map<number, Query>();
  #subscription: Subscription | null = null;

  constructor(options: {
    readonly bus: ConductorBus;
    readonly cell: string;
    readonly clock: Clock;
    readonly events: ConductorEvents;
    readonly registry: Pick<AgentRegistry, "connectionOf">;
  }) {
    this.#options = options;
  }

  /** Without the bus nobody asks, so a failure is only logged. */
  async start(): Promise<void> {
    const { bus, cell, events } = this.#options;
    try {
      this.#subscription = await bus.answer(cellConsolesSubject(cell), (question) => this.#answer(question));
    } catch (error) {
      events.busFailed(error);
    }
  }

  async stop(): Promise<void> {
    await this.#subscription?.stop();
  }

  /** Takes an agent's answer if it comes from the asked connection and names the asked host. */
  told(told: Told, connection: AgentConnection): void {
    const query = this.#queries.get(told.query);
    if (query === undefined) return;
    if (query.connection === connection && query.host === told.host) query.resolve(told);
    else this.#options.events.reportDropped(connection.agentId, told.host, "console");
  }

  async #answer(question: Uint8Array): Promise<Uint8Array> {
    const answer = encodeMessage(ConsoleAnswer, { answer: await this.#ask(ConsoleQuestion.decode(question)) });
    return answer.length <= ANSWER_BYTES_MAX ? answer : encodeMessage(ConsoleAnswer, { answer: TOO_LARGE });
  }

  async #ask(question: ConsoleQuestion): Promise<ConsoleAnswer["answer"]> {
    const { host } = question;
    const connection = this.#options.registry.connectionOf(host);
    if (connection === null || connection.stream.closed) return { $case: "away", value: true };
    // Guests that are slow to release their interfaces must not keep others from being read, and many readers must not keep interfaces from being changed.
    const isChange = question.interfaces !== undefined || question.password !== undefined;
    const open = [...this.#queries.values()].filter((one) => one.isChange === isChange).length;
    if (open >= OPEN_MAX) return { $case: "failed", value: "too many guests are being asked about" };
    const query = randomInt(1, QUERY_MAX);
    const { promise, resolve } = Promise.withResolvers<Told>();
    this.#queries.set(query, { connection, host, isChange, resolve });
    try {
      connection.stream.send({ body: orderOf(question, query) });
      const deadlineMs = isChange ? CHANGE_MS : ANSWER_MS;
      const told = await withDeadline(promise, deadlineMs, "asking about a guest", this.#options.clock);
      if (isChange) return answers(told, question) ? changeOf(told) : OF_ANOTHER_QUESTION;
      if (told.absent) return { $case: "absent", value: true };
      if (told.failed !== "") return { $case: "failed", value: told.failed.slice(0, TEXT_CHARACTERS_MAX) };
      if (!answers(told, question)) return OF_ANOTHER_QUESTION;
      if ("pinning" in told) return { $case: "pinning", value: told.pinning ?? { cpus: {}, nodes: [], pageKib: 0 } };
      if ("diagnostics" in told) return measuredOf(told);
      if ("output" in told) return { $case: "output", value: endOf(told.output, bytesMaxOf(question)) };
      if (!("address" in told)) return { $case: "unavailable", value: true };
      return openedOf(told, question.open?.graphical === true);
    } catch {
      // Only the deadline rejects.
      return { $case: "failed", value: "the agent of its host did not answer in time" };
    } finally {
      this.#queries.delete(query);
    }
  }
}

const TOO_LARGE = { $case: "failed", value: "the agent of its host gave an answer that is too large" } as const;
const OF_ANOTHER_QUESTION = {
  $case: "failed",
  value: "the agent of its host gave an answer to another question",
} as const;

/** Whether the agent has answered this kind of question. */
function answers(told: Told, { open, pinning, diagnostics, interfaces, password }: ConsoleQuestion): boolean {
  if (password !== undefined) return "unsupported" in told;
  // A console that is opened may be unavailable, too, and has an address.
  if (interfaces !== undefined) return "unavailable" in told && !("address" in told);
  if (pinning) return "pinning" in told;
  if (diagnostics) return "diagnostics" in told;
  return open === undefined ? "output" in told : "address" in told;
}

function orderOf(question: ConsoleQuestion, query: number): ConductorMessage["body"] {
  const { host, serverUuid, attemptId, open, pinning, diagnostics, interfaces, revision, password } = question;
  const guest = { host, serverUuid, attemptId, query };
  if (password !== undefined) return { $case: "changePassword", value: { ...guest, password } };
  if (interfaces !== undefined) return { $case: "setInterfaces", value: { ...guest, interfaces, revision } };
  if (pinning) return { $case: "readPinning", value: guest };
  if (diagnostics) return { $case: "readDiagnostics", value: guest };
  if (open !== undefined) return { $case: "openConsole", value: { ...guest, ...open } };
  return { $case: "readConsole", value: { ...guest, bytesMax: bytesMaxOf(question) } };
}

function changeOf(told: Told): ConsoleAnswer["answer"] {
  return "unsupported" in told ? passwordOf(told) : interfacesOf(told);
}

function passwordOf({ absent, unsupported, failed }: PasswordChanged): ConsoleAnswer["answer"] {
  if (absent) return { $case: "absent", value: true };
  if (unsupported) return { $case: "unavailable", value: true };
  if (failed !== "") return { $case: "passwordRefused", value: failed.slice(0, TEXT_CHARACTERS_MAX) };
  return { $case: "passwordChanged", value: true };
}

function interfacesOf(told: Told): ConsoleAnswer["answer"] {
  if (told.absent) return { $case: "absent", value: true };
  if (told.failed !== "") return { $case: "interfacesRefused", value: told.failed.slice(0, TEXT_CHARACTERS_MAX) };
  const isSet = !("unavailable" in told && told.unavailable);
  return isSet ? { $case: "interfacesSet", value: true } : { $case: "unavailable", value: true };
}

function measuredOf({ diagnostics }: DiagnosticsRead): ConsoleAnswer["answer"] {
  return diagnostics === undefined
    ? { $case: "unavailable", value: true }
    : { $case: "diagnostics", value: diagnostics };
}

/** An agent of an older version opens the serial console although the display was asked for. */
function openedOf(told: ConsoleOpened, graphical: boolean): ConsoleAnswer["answer"] {
  if (told.unavailable || told.graphical !== graphical) return { $case: "unavailable", value: true };
  return { $case: graphical ? "openedDisplay" : "opened", value: told.address.slice(0, TEXT_CHARACTERS_MAX) };
}

const bytesMaxOf = ({ bytesMax }: ConsoleQuestion): number => Math.min(bytesMax, BYTES_MAX);
const endOf = (output: Buffer, bytesMax: number): Buffer => output.subarray(Math.max(0, output.length - bytesMax));
