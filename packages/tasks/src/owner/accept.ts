/** The owner's answer to work whose checks passed and which is not verified by itself. */
import { MAX_ACCEPTED_FILES } from "@heddle/protocol/tasks";
import { HeddleError, isObstructed, type TaskEventBody, type TaskRecord } from "@heddle/protocol";

/** With a list of files: judged again with these as the work. Without: it ends on the owner's word, never as verified. */
export function accepted(task: TaskRecord, note: string | undefined): TaskEventBody {
  const { id, state, lastCheck, round, attempt } = task;
  const review = lastCheck?.round === round ? lastCheck.review : undefined;
  if (state !== "paused" || review === undefined)
    throw new HeddleError(
      "task.illegal",
      `task ${id} is ${state} and has nothing that waits for you to accept it; heddle task show ${id} shows its state`,
    );
  if (task.undone !== undefined)
    throw new HeddleError(
      "task.illegal",
      `the workspace of ${id} was put back, so its work no longer exists; heddle task retry ${id} --from-baseline begins again`,
    );
  if (review.deliver !== undefined) return { type: "task.resumed", v: 1, deliver: [...review.deliver] };
  const many = review.reasons.find(({ kind, count }) => kind === "rests" && count !== undefined);
  if (many !== undefined)
    throw new HeddleError(
      "task.illegal",
      `the checks of ${id} need ${many.count} files that cannot be accepted one by one (at most ${MAX_ACCEPTED_FILES}, whose names are text, and no caches); say in the spec which are the work (deliver: [globs]) and start the task again`,
    );
  // Nothing of the work is in doubt: it is judged and delivered again.
  if (isObstructed(review)) return { type: "task.resumed", v: 1 };
  const why = review.reasons.map(({ message }) => message).join("; ");
  const summary = note ?? `accepted by the user, although ${why}`;
  return { type: "task.claimed", v: 1, attempt: Math.max(attempt, 1), by: "user", summary };
}
