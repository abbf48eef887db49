import { cellConsolesSubject } from "../../adapters/nats/streams.ts";
import { ConsoleAnswer, ConsoleQuestion } from "../../proto/gen/berth/cell.ts";
import type { Bus } from "../../runtime/bus.ts";

/** Answers an api's orders about guests' interfaces as a cell's conductor does, and returns them. Without `answer` each guest gets what it is to have. */
export async function answerInterfaces(
  bus: Pick<Bus, "answer">,
  cell: string,
  answer: (question: ConsoleQuestion) => ConsoleAnswer["answer"] = () => ({ $case: "interfacesSet", value: true }),
): Promise<readonly ConsoleQuestion[]> {
  const asked: ConsoleQuestion[] = [];
  await bus.answer(cellConsolesSubject(cell), async (bytes) => {
    const question = ConsoleQuestion.decode(bytes);
    asked.push(question);
    return ConsoleAnswer.encode({ answer: answer(question) }).finish();
  });
  return asked;
}
