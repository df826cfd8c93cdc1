/** Acts that need more than a press: another name, other limits, and a look at what an undo would take back. */
import type { Task, ThreadDetail } from "@heddle/protocol/http";
import { useState, type ReactNode } from "react";
import { api } from "../../live/session.ts";
import { Refusal, useAct, type Act } from "../../parts/act.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import type { Form } from "./doings.ts";
import { submitted, type FormPart } from "./form-part.ts";
import { Undo } from "./undo.tsx";

interface ActFormProps {
  readonly form: Form;
  readonly task: Task | undefined;
  readonly thread: ThreadDetail | undefined;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

const LABELS: Readonly<Record<Form, string>> = {
  rename: "Rename the thread",
  change: "Change the task",
  undo: "Undo its work",
};

export function ActForm({ form, task, thread, onClose, onDone }: ActFormProps): ReactNode {
  const act = useAct();
  /** Closed by what succeeds; a refusal stays beside what was asked. */
  const send = (call: () => Promise<unknown>): void =>
    act.run(LABELS[form], async () => {
      await call();
      onDone();
      onClose();
    });
  return (
    <Dialog label={LABELS[form]} className="act-form" onClose={onClose}>
      <h2 className="h">{LABELS[form]}</h2>
      {form === "rename" && thread !== undefined ? <Rename thread={thread} act={act} send={send} /> : null}
      {form === "change" && task !== undefined ? <Change task={task} act={act} send={send} /> : null}
      {form === "undo" && task !== undefined ? <Undo task={task} act={act} send={send} /> : null}
      <Refusal act={act} />
      <button type="button" className="btn quiet" onClick={onClose}>
        Close
      </button>
    </Dialog>
  );
}

function Rename({ thread, act, send }: FormPart & { thread: ThreadDetail }): ReactNode {
  const [name, setName] = useState(thread.name ?? thread.title ?? "");
  return (
    <form onSubmit={submitted(() => send(() => api().nameThread(thread.id, name.trim())))}>
      <input
        className="in"
        autoFocus
        aria-label="Name"
        maxLength={200}
        value={name}
        onChange={(event) => setName(event.target.value)}
      />
      <Save act={act} isOff={name.trim() === ""} label="Rename" />
    </form>
  );
}

const LIMITS = [
  ["turns", "Turns", 1],
  ["tokens", "Tokens", 1],
  ["timeMs", "Minutes", 60_000],
  ["costUsd", "Dollars", 1],
] as const;

type Limits = Readonly<Record<string, string>>;

function Change({ task, act, send }: FormPart & { task: Task }): ReactNode {
  const { spec } = task;
  const [name, setName] = useState(spec.name);
  const [labels, setLabels] = useState(spec.labels.join(", "));
  const [priority, setPriority] = useState(String(spec.priority));
  const known = limitsOf(task);
  const [limits, setLimits] = useState<Limits>(known);
  const save = (): Promise<unknown> =>
    api().tasks.change(task.id, {
      ...(name.trim() === spec.name ? {} : { name: name.trim() }),
      labels: labels
        .split(",")
        .map((label) => label.trim())
        .filter(Boolean),
      priority: Number(priority),
      ...changedLimits(known, limits),
    });
  return (
    <form onSubmit={submitted(() => send(save))}>
      <Field label="Name" value={name} onChange={setName} isRequired />
      <Field label="Labels, separated by commas" value={labels} onChange={setLabels} />
      <Field label="Priority, higher first" value={priority} onChange={setPriority} type="number" isRequired />
      <fieldset className="limits">
        <legend className="h">At most, all attempts together</legend>
        {LIMITS.map(([what, label]) => (
          <Field
            key={what}
            label={label}
            type="number"
            value={limits[what] ?? ""}
            onChange={(value) => setLimits({ ...limits, [what]: value })}
          />
        ))}
      </fieldset>
      <p className="meta">What it is to do and its checks stay as ordered: the verdict rests on them.</p>
      <Save act={act} isOff={name.trim() === ""} label="Save" />
    </form>
  );
}

function limitsOf({ spec: { budget }, extraBudget }: Task): Limits {
  return Object.fromEntries(
    LIMITS.map(([what, , unit]) => {
      const limit = budget[what];
      return [what, limit === undefined ? "" : String((limit + (extraBudget[what] ?? 0)) / unit)];
    }),
  );
}

function changedLimits(known: Limits, limits: Limits): { budget?: Record<string, number> } {
  const budget = Object.fromEntries(
    LIMITS.flatMap(([what, , unit]) => {
      const text = limits[what] ?? "";
      return text === known[what] || text === "" ? [] : [[what, Number(text) * unit]];
    }),
  );
  return Object.keys(budget).length === 0 ? {} : { budget };
}

interface FieldProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly type?: "text" | "number";
  readonly isRequired?: boolean;
}

function Field({ label, value, onChange, type = "text", isRequired = false }: FieldProps): ReactNode {
  return (
    <label className="fl">
      <span className="h">{label}</span>
      <input
        className="in"
        type={type}
        step="any"
        required={isRequired}
        value={value}
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}

function Save({ act, isOff, label }: { act: Act; isOff: boolean; label: string }): ReactNode {
  return (
    <button type="submit" className="btn pri" disabled={isOff || act.sending !== undefined}>
      {act.sending === undefined ? label : "sending…"}
    </button>
  );
}
