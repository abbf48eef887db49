import { assert } from "../../../core/assert.ts";
import {
  type AnswerTo,
  isQuestion,
  type Learnt,
  type PlacingDeed,
  type PlacingEnd,
  type PlacingEvent,
  type PlacingPlan,
  type PlacingQuestion,
} from "../../../core/placing/placing.ts";
import { beginPlacing, stepPlacing } from "../../../core/placing/step-placing.ts";

type QuestionKind = PlacingQuestion["kind"];
type Asked<Kind extends QuestionKind> = Extract<PlacingQuestion, { readonly kind: Kind }>;

/** Answers these questions of the machine. A question that cannot be answered throws or rejects. */
export type PlacingAnswers<Kind extends QuestionKind> = {
  readonly [One in Kind]: (question: Asked<One>) => AnswerTo<One> | Promise<AnswerTo<One>>;
};

export interface PlacingHands {
  /** All questions that the route of the plan leads to. */
  readonly answers: Partial<PlacingAnswers<QuestionKind>>;
  /** `error`: the last one that a question failed with. */
  carryOut(deed: PlacingDeed, error: unknown): void;
}

export interface EndedPlacing {
  readonly end: Exclude<PlacingEnd, { readonly kind: "failed" }>;
  readonly learnt: Learnt;
}

/**
 * Carries out one placing, from what its row says to its end. Rejects with the error of a store when nobody knows whether the server was
 * placed: then it is to be tried again. What is answered at once is not waited for, so that a host is chosen and held in one turn.
 */
export async function runPlacing(
  plan: PlacingPlan,
  cell: string | null,
  { answers, carryOut }: PlacingHands,
): Promise<EndedPlacing> {
  let error: unknown = null;
  for (let step = beginPlacing(plan, cell); ; ) {
    const { state, effects } = step;
    let event: PlacingEvent | null = null;
    try {
      for (const effect of effects) {
        if (!isQuestion(effect)) carryOut(effect, error);
        else {
          const answer = answerTo(answers, effect);
          event = answer instanceof Promise ? await answer : answer;
        }
      }
    } catch (failure) {
      error = failure;
      event = { kind: "failed" };
    }
    if (state.kind === "ended") {
      const { end, learnt } = state;
      if (end.kind === "failed") throw error;
      return { end, learnt };
    }
    assert(event !== null, `a placing that is ${state.kind} asks nothing`);
    step = stepPlacing(plan, state, event);
  }
}

function answerTo(answers: PlacingHands["answers"], question: PlacingQuestion): PlacingEvent | Promise<PlacingEvent> {
  const answer = answers[question.kind] as
    | ((question: PlacingQuestion) => PlacingEvent | Promise<PlacingEvent>)
    | undefined;
  assert(answer !== undefined, `nobody answers "${question.kind}" on this route`);
  return answer.call(answers, question);
}
