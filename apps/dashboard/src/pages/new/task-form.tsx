/** The form: goal large, then what decides, then what it may take and do. */
import { useState, type ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { ActButton, Refusal, useAct } from "../../parts/act.tsx";
import { Icon } from "../../parts/base.tsx";
import { line } from "../../text/shown.ts";
import { CHECK_KINDS, type Draft, type DraftCheck } from "./draft.ts";
import type { Linted } from "./new-task.tsx";

type TextKey = { [K in keyof Draft]: Draft[K] extends string ? K : never }[keyof Draft];

interface FormProps {
  readonly draft: Draft;
  readonly onChange: (more: Partial<Draft>) => void;
  readonly linted: Linted;
}

export function TaskForm({ draft, onChange, linted }: FormProps): ReactNode {
  const { server } = useFacts();
  const isOwner = server.data?.principal.role === "owner";
  const folders = useResource("folders", async (signal) => (await api().recentWorkspaces({ signal })).data);
  const models = useResource("models", async (signal) => (await api().models({}, { signal })).data);
  const text = (key: TextKey) => ({
    value: draft[key],
    onChange: (value: string) => onChange({ [key]: value }),
  });
  return (
    <div className="nt-form">
      <label className="fl">
        <span className="h">
          Goal <span className="fg2">told to the agent as it stands</span>
        </span>
        <textarea
          className="goal"
          rows={3}
          autoFocus
          value={draft.goal}
          onChange={(event) => onChange({ goal: event.target.value })}
        />
      </label>
      <div className="two-up">
        <Field label="Name" {...text("name")} />
        <Field label="Folder" {...text("workspace")} list="folders" placeholder="the server's own folder" />
        <datalist id="folders">
          {(folders.data ?? []).map((path) => (
            <option key={path} value={path} />
          ))}
        </datalist>
      </div>
      <Checks draft={draft} onChange={onChange} linted={linted} />
      <div className="two-up">
        <fieldset className="fs">
          <legend className="h">
            May take <span className="fg2">then it pauses and asks</span>
          </legend>
          <div className="set">
            <Row label="time" {...text("time")} placeholder="4h" />
            <Row label="turns" {...text("turns")} placeholder="20" />
            <Row label="tokens" {...text("tokens")} placeholder="5,000,000" />
            <Row label="money" {...text("costUsd")} placeholder="no limit, in $" />
          </div>
        </fieldset>
        <fieldset className="fs">
          <legend className="h">May do</legend>
          <div className="set">
            <Select
              label="sandbox"
              {...text("sandbox")}
              choices={["read-only", "workspace-write", ...(isOwner ? ["danger-full-access"] : [])]}
            />
            <Select
              label="network"
              value={draft.network ? "yes" : "no"}
              onChange={(value) => onChange({ network: value === "yes" })}
              choices={isOwner ? ["no", "yes"] : ["no"]}
            />
            <Select
              label="asks you"
              {...text("approval")}
              choices={["never", "on-request", "on-failure", "untrusted"]}
            />
            <Select
              label="your folder changes"
              {...text("apply")}
              choices={["", "live", "on-verified", "never"]}
              names={{ "": "as it writes" }}
            />
          </div>
          {isOwner ? null : <p className="meta">Network and full access are for owners.</p>}
        </fieldset>
        <fieldset className="fs">
          <legend className="h">Who</legend>
          <div className="set">
            <Row label="model" {...text("model")} placeholder="as configured" list="models" />
          </div>
          <datalist id="models">
            {(models.data ?? []).flatMap(({ provider, models: all }) =>
              all.slice(0, 40).map(({ id }) => <option key={`${provider}/${id}`} value={id} />),
            )}
          </datalist>
        </fieldset>
        <fieldset className="fs">
          <legend className="h">When</legend>
          <div className="set">
            <Row label="after" {...text("after")} placeholder="no other task" />
          </div>
        </fieldset>
      </div>
      <details>
        <summary className="more-keys">What it delivers, protected paths, labels</summary>
        <div className="set wide-set">
          <Row label="delivers" {...text("deliver")} placeholder="globs, separated by commas: src/**" />
          <Row label="protected" {...text("protect")} placeholder="globs the agent must not change" />
          <Row label="labels" {...text("labels")} placeholder="separated by commas" />
        </div>
        <p className="meta">Steps, schedules, retries, contests and hops are written as YAML.</p>
      </details>
    </div>
  );
}

interface TextProps {
  readonly label: string;
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly placeholder?: string;
  readonly list?: string;
}

function Field({ label, value, onChange, placeholder, list }: TextProps): ReactNode {
  return (
    <label className="fl">
      <span className="h">{label}</span>
      <input
        className="in"
        value={value}
        placeholder={placeholder}
        list={list}
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}

function Row({ label, value, onChange, placeholder, list }: TextProps): ReactNode {
  return (
    <label className="set-row">
      <span>{label}</span>
      <input
        className="in"
        value={value}
        placeholder={placeholder}
        list={list}
        onChange={(event) => onChange(event.target.value)}
      />
    </label>
  );
}

interface SelectProps extends TextProps {
  readonly choices: readonly string[];
  readonly names?: Readonly<Record<string, string>>;
}

function Select({ label, value, onChange, choices, names = {} }: SelectProps): ReactNode {
  return (
    <label className="set-row">
      <span>{label}</span>
      <select className="in" value={value} onChange={(event) => onChange(event.target.value)}>
        {choices.map((choice) => (
          <option key={choice} value={choice}>
            {names[choice] ?? choice}
          </option>
        ))}
      </select>
    </label>
  );
}

function Checks({ draft, onChange, linted }: FormProps): ReactNode {
  const { checks } = draft;
  const set = (index: number, check: DraftCheck | undefined): void =>
    onChange({ checks: check === undefined ? checks.filter((_, at) => at !== index) : checks.with(index, check) });
  const results = linted.answer?.results ?? [];
  return (
    <section aria-label="What decides">
      <div className="row">
        <h2 className="h">
          What decides <span className="fg2">Heddle runs these itself; the agent&apos;s word decides nothing</span>
        </h2>
        <span className="grow" />
        <Propose draft={draft} onChange={onChange} />
      </div>
      <ul className="cb">
        {checks.map((check, index) => (
          <li key={index}>
            <span className="kind">{check.kind}</span>
            <input
              className="mono bare grow"
              aria-label={`${check.kind}, ${index + 1}`}
              placeholder={CHECK_KINDS[check.kind]}
              value={check.text}
              onChange={(event) => set(index, { ...check, text: event.target.value })}
            />
            <Says outcome={results[index]?.outcome} />
            <button
              type="button"
              className="btn quiet sq"
              aria-label={`Remove the check ${check.kind}, ${index + 1}`}
              onClick={() => set(index, undefined)}
            >
              <Icon name="x" small />
            </button>
          </li>
        ))}
        <li className="add">
          <Icon name="plus" />
          {Object.keys(CHECK_KINDS).map((kind) => (
            <button key={kind} type="button" onClick={() => onChange({ checks: [...checks, { kind, text: "" }] })}>
              {kind}
            </button>
          ))}
        </li>
      </ul>
      {checks.length === 0 ? (
        <p className="meta say">Without a check nothing can verify it: it can only be claimed.</p>
      ) : null}
    </section>
  );
}

function Says({ outcome }: { outcome: string | undefined }): ReactNode {
  switch (outcome) {
    case "passed":
      return (
        <>
          <span className="tag say">vacuous</span>
          <span className="now-says">passes now</span>
        </>
      );
    case "failed":
      return <span className="now-says no">fails now</span>;
    case "error":
      return <span className="now-says refusal">cannot run</span>;
    default:
      return null;
  }
}

/** Asks a model, which costs; what it proposes becomes YAML to be read. */
function Propose({ draft, onChange }: Pick<FormProps, "draft" | "onChange">): ReactNode {
  const act = useAct();
  const [isAsked, setAsked] = useState(false);
  const propose = async (): Promise<void> => {
    if (!isAsked) {
      setAsked(true);
      return;
    }
    const plan = await api().tasks.plan({
      prompt: draft.goal,
      ...(draft.workspace === "" ? {} : { workspace: draft.workspace }),
    });
    setAsked(false);
    onChange({ mode: "yaml", text: `# proposed by a model: read it before you add it\n${plan.text}` });
  };
  return (
    <>
      <Refusal act={act} />
      <ActButton act={act} name="Propose checks" isOff={draft.goal.trim() === ""} call={propose}>
        <Icon name="plan" /> {isAsked ? line("A model is asked, which costs: ask?") : "Propose checks"}
      </ActButton>
    </>
  );
}
