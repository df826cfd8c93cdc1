/** What an undo would take back is looked at first: nothing is undone that was not shown. */
import type { Task, UndoneTask } from "@heddle/protocol/http";
import { useEffect, useState, type ReactNode } from "react";
import { asError } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { Problem, Waiting } from "../../parts/base.tsx";
import { line } from "../../text/shown.ts";
import { submitted, type FormPart } from "./form-part.ts";

const MOST_FILES = 20;
const MOST_LATER = 5;

export function Undo({ task, act, send }: FormPart & { task: Task }): ReactNode {
  const look = useLook(task.id);
  const [isForced, setForced] = useState(false);
  if (look instanceof Error) return <Problem error={look} />;
  if (look === undefined) return <Waiting lines={3} />;
  const { count, later } = look;
  const undo = (retry: boolean) => (): Promise<unknown> =>
    api().tasks.undo(task.id, { ...(isForced ? { force: true } : {}), ...(retry ? { retry: true } : {}) });
  const isOff = (later.length > 0 && !isForced) || act.sending !== undefined;
  const sentence =
    count === 0
      ? "Nothing would be taken back: its folder is as it was when the task began."
      : count === 1
        ? "1 file goes back to how it was when the task began. What the agent wrote there is lost."
        : `${count} files go back to how they were when the task began. What the agent wrote there is lost.`;
  return (
    <form onSubmit={submitted(() => send(undo(false)))}>
      <p>{sentence}</p>
      <Files of={look} />
      {later.length === 0 ? null : (
        <label className="row say">
          <input type="checkbox" checked={isForced} onChange={(event) => setForced(event.target.checked)} />
          also what changed after the agent stopped: {later.slice(0, MOST_LATER).map(line).join(", ")}
          {later.length > MOST_LATER ? ` and ${later.length - MOST_LATER} more` : ""}
        </label>
      )}
      <div className="row gap6">
        <button type="submit" className="btn bad" disabled={isOff || count === 0}>
          {act.sending === undefined ? "Undo" : "sending…"}
        </button>
        <button type="button" className="btn" disabled={isOff} onClick={() => send(undo(true))}>
          Undo, and begin again
        </button>
      </div>
    </form>
  );
}

/** Once: what it says holds for now, and the server looks again before it does anything. */
function useLook(taskId: string): UndoneTask | Error | undefined {
  const [look, setLook] = useState<UndoneTask | Error>();
  useEffect(() => {
    api()
      .tasks.undo(taskId, { dryRun: true })
      .then(setLook, (error: unknown) => setLook(asError(error)));
  }, [taskId]);
  return look;
}

function Files({ of: { files, count } }: { of: UndoneTask }): ReactNode {
  if (files.length === 0) return null;
  return (
    <ul>
      {files.slice(0, MOST_FILES).map(({ path, how }) => (
        <li key={path}>
          <code className="wrap">{line(path)}</code> <span className="fg2">{how}</span>
        </li>
      ))}
      {count > MOST_FILES ? <li className="fg2">and {count - MOST_FILES} more</li> : null}
    </ul>
  );
}
