/** What can be done with several tasks at once. Each is asked by itself; refusals are named. */
import type { TaskSummary } from "@heddle/protocol/http";
import type { ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { api } from "../../live/session.ts";
import { ActButton, Refusal, useAct } from "../../parts/act.tsx";
import { line } from "../../text/shown.ts";

const ENDED = ["verified", "failed", "cancelled", "claimed"];

export function Selection({ tasks, onDone }: { tasks: readonly TaskSummary[]; onDone: () => void }): ReactNode {
  const act = useAct();
  const { server } = useFacts();
  const role = server.data?.principal.role ?? "viewer";
  const each =
    (fits: (task: TaskSummary) => boolean, call: (id: string) => Promise<unknown>) => async (): Promise<void> => {
      const refused: string[] = [];
      for (const task of tasks.filter(fits)) {
        try {
          await call(task.id);
        } catch (error) {
          refused.push(`${line(task.name)}: ${error instanceof Error ? error.message : String(error)}`);
        }
      }
      if (refused.length > 0) throw new Error(refused.join("; "));
      onDone();
    };
  const isPaused = ({ state }: TaskSummary): boolean => state === "paused";
  const isEnded = ({ state }: TaskSummary): boolean => ENDED.includes(state);
  const goesOn = (task: TaskSummary): boolean => !isPaused(task) && !isEnded(task) && task.state !== "archived";
  const offers: readonly (readonly [string, (task: TaskSummary) => boolean, (id: string) => Promise<unknown>])[] = [
    ["Pause", goesOn, (id) => api().tasks.pause(id)],
    ["Resume", isPaused, (id) => api().tasks.resume(id)],
    ["Cancel", (task) => goesOn(task) || isPaused(task), (id) => api().tasks.cancel(id)],
    ["Try again", ({ state }) => ["failed", "cancelled", "claimed"].includes(state), (id) => api().tasks.retry(id)],
    ["Archive", isEnded, (id) => api().tasks.archive(id)],
  ];
  return (
    <div className="selection" role="group" aria-label="Selected tasks">
      <b>{tasks.length} selected</b>
      {role === "viewer"
        ? null
        : offers
            .filter(([, fits]) => tasks.some(fits))
            .map(([name, fits, call]) => (
              <ActButton key={name} act={act} name={name} call={each(fits, call)}>
                {name} {tasks.filter(fits).length}
              </ActButton>
            ))}
      <button type="button" className="btn quiet" onClick={onDone}>
        Clear
      </button>
      <Refusal act={act} />
    </div>
  );
}
