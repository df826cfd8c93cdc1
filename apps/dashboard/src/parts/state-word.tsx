/** The state of a task: its glyph and its word, in its colour, from the one table. */
import { wordsOf, type TaskStanding } from "@heddle/protocol/task-words";
import type { ReactNode } from "react";
import { Icon, TONE_CLASS } from "./base.tsx";

export function StateWord({ task }: { task: TaskStanding }): ReactNode {
  const words = wordsOf(task);
  return (
    <span className={`word ${TONE_CLASS[words.tone]}`}>
      <Icon name={words.glyph} />
      {words.word}
    </span>
  );
}
