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

/** Answers these questions of the machine. It throws or rejects when a question cannot be answered. */
export type PlacingAnswers<Kind extends QuestionKind> = {
  readonly [One in Kind]: (question: Asked<One>) => AnswerTo<One> | Promise<AnswerTo<One>>;
};

export interface PlacingHands {
  /** Answers all questions that occur on the plan's route. */
  readonly answers: Partial<PlacingAnswers<QuestionKind>>;
  /** `error` is the last error with which a question failed. */
  carryOut(deed: PlacingDeed, error: unknown): void;
}

export interface EndedPlacing {
  readonly end: Exclude<PlacingEnd, { readonly kind: "failed" }>;
  readonly learnt: Learnt;
}

/**
 * Carries out one placing, from its row to its end. Rejects with the store's error when nobody knows whether the server was placed; then it
 * must be tried again. Synchronous answers are not awaited, so that a host is chosen and reserved in one turn.
 */
export async function runPlacing(
  plan: PlacingPlan,
  { cell, assignment = 0 }: { readonly cell: string | null; readonly assignment?: number },
  { answers, carryOut }: PlacingHands,
): Promise<EndedPlacing> {
  let error: unknown = null;
  for (let step = beginPlacing(plan, cell, assignment); ; ) {
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
