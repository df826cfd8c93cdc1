/** An answer to a task that asks: its next prompt begins with it. */
import { useState, type ReactNode } from "react";
import { api } from "../live/session.ts";
import type { Act } from "./act.tsx";

export function Reply({ act, taskId }: { act: Act; taskId: string }): ReactNode {
  const [isOpen, setOpen] = useState(false);
  const [text, setText] = useState("");
  if (!isOpen)
    return (
      <button type="button" className="btn" onClick={() => setOpen(true)}>
        Answer…
      </button>
    );
  return (
    <form
      className="deny"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() !== "") act.run("Answer", () => api().tasks.resume(taskId, { input: text.trim() }));
      }}
    >
      <input
        className="in"
        autoFocus
        aria-label="Your answer"
        placeholder="Your answer; the task goes on with it"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") setOpen(false);
        }}
      />
      <button type="submit" className="btn" disabled={text.trim() === "" || act.sending !== undefined}>
        {act.sending === "Answer" ? "sending…" : "Answer"}
      </button>
    </form>
  );
}
