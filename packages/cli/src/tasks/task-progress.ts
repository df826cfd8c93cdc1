/** What the line at the bottom of a terminal says about running tasks: a check, or what the turn does. */
import { isTaskEvent, visibleLine, type StoredEvent } from "@heddle/protocol";
import { runningText, WAITING } from "../print/items.ts";
import type { Progress } from "../print/progress.ts";

export function showProgressOf(
  progress: Progress,
  { stream, body }: Pick<StoredEvent, "stream" | "body">,
  whose: string,
): void {
  // Whatever a task reports next, the check before it has ended.
  if (isTaskEvent(body)) progress.end(stream);
  if (body.type === "task.checking") progress.begin(stream, `${whose} runs ${visibleLine(body.name)}`);
  else if (body.type === "turn.started") progress.begin(stream, `${whose} ${WAITING}`);
  else if (body.type === "turn.completed") progress.end(stream);
  else if (body.type === "item.started") progress.begin(body.item.id, `${whose} ${runningText(body.item)}`, stream);
  else if (body.type === "item.checkpointed") progress.touch(body.itemId);
  else if (body.type === "item.completed") progress.end(body.item.id);
}
