/** What the commands of a thread run now, and what can be done about one of them: typed into, its input ended, itself ended. */
import type { ProcessList } from "@heddle/protocol/http";
import { useState, type ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { isOfCommand, useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { ActButton, Refusal, useAct, type Act } from "../../parts/act.tsx";
import { Icon } from "../../parts/base.tsx";
import { brief, line } from "../../text/shown.ts";
import { duration } from "../../words/figures.ts";

type Command = ProcessList["data"][number];
type Process = Command["processes"][number];

const SETTLE_MS = 400;

export function Processes({ threadId, isOpen }: { threadId: string; isOpen: boolean }): ReactNode {
  const { server } = useFacts();
  const role = server.data?.principal.role ?? "viewer";
  const { data, reload } = useResource(
    `processes:${threadId}`,
    async (signal) => {
      // A command that has just begun is still on its way into the sandbox.
      await new Promise((resolve) => {
        setTimeout(resolve, SETTLE_MS);
      });
      return (await api().listProcesses(threadId, { signal })).data;
    },
    { on: (event) => event.threadId === threadId && isOfCommand(event) },
  );
  if (data === undefined || data.length === 0) return null;
  return (
    <section aria-label="Processes">
      <div className="row">
        <h2 className="ch grow">
          Runs now <span>{isOpen ? "" : "after the turn"}</span>
        </h2>
        <button type="button" className="btn quiet" onClick={reload}>
          Look again
        </button>
      </div>
      <ul className="checks">
        {data.map((command) => (
          <CommandRow
            key={command.processId}
            threadId={threadId}
            command={command}
            mayType={role === "owner" || (role === "user" && !command.isBeyond)}
            mayEnd={role !== "viewer"}
            onDone={reload}
          />
        ))}
      </ul>
    </section>
  );
}

interface RowProps {
  readonly threadId: string;
  readonly command: Command;
  readonly mayType: boolean;
  readonly mayEnd: boolean;
  readonly onDone: () => void;
}

function CommandRow({ threadId, command, mayType, mayEnd, onDone }: RowProps): ReactNode {
  const act = useAct();
  const { processId, hasInput, isBeyond, awaitedBy, processes } = command;
  const { around, inner } = parted(processes);
  const end = async (process: Process): Promise<void> => {
    const { outcome } = await api().endProcess(threadId, process);
    onDone();
    if (outcome === "stays") throw new Error(`Process ${process.pid} did not end.`);
  };
  const processLine = (process: Process): ReactNode => (
    <ProcessLine key={`${process.pid}:${process.startTicks}`} process={process}>
      {mayEnd ? (
        <ActButton act={act} name={`End ${process.pid}`} className="btn quiet" call={() => end(process)}>
          End this one
        </ActButton>
      ) : null}
    </ProcessLine>
  );
  return (
    <li>
      <Icon name="dollar" tone="fg2" />
      <div className="grow">
        <p className="wrap">
          <code>{brief(command.command, 200)}</code>
        </p>
        <p className="meta">
          {awaitedBy.length === 0 ? "in the background" : "the agent waits for it"}
          {isBeyond ? " · beyond the sandbox" : ""}
        </p>
        {inner.map(processLine)}
        {around.length === 0 ? null : (
          <details>
            <summary className="meta">
              {around.length} {around.length === 1 ? "process" : "processes"} around it
            </summary>
            {around.map(processLine)}
          </details>
        )}
        {hasInput && mayType ? <Type {...{ threadId, processId, act, onDone }} /> : null}
        <Refusal act={act} />
      </div>
    </li>
  );
}

/** What only holds one other process, such as the sandbox and its shell, is around what works. */
function parted(processes: readonly Process[]): {
  readonly around: readonly Process[];
  readonly inner: readonly Process[];
} {
  const childrenOf = (of: Process): readonly Process[] => processes.filter(({ parent }) => parent === of.pid);
  const pids = new Set(processes.map(({ pid }) => pid));
  const around: Process[] = [];
  let [at, ...others] = processes.filter(({ parent }) => !pids.has(parent));
  while (at !== undefined && others.length === 0) {
    const [child, ...more] = childrenOf(at);
    if (child === undefined || more.length > 0) break;
    around.push(at);
    [at, ...others] = [child];
  }
  return { around, inner: processes.filter((process) => !around.includes(process)) };
}

function ProcessLine({ process, children }: { process: Process; children: ReactNode }): ReactNode {
  const { pid, command, runningMs, cpuMs, readsStdin } = process;
  return (
    <div className="row t12">
      <span className="grow wrap">
        <code>{brief(command, 80)}</code>{" "}
        <span className="fg2">
          pid {pid}, {duration(runningMs)}, {duration(cpuMs)} CPU
        </span>
        {readsStdin ? <span className="say"> waits for input</span> : null}
      </span>
      {children}
    </div>
  );
}

interface TypeProps {
  readonly threadId: string;
  readonly processId: string;
  readonly act: Act;
  readonly onDone: () => void;
}

/** What is typed goes to the command as a line, and on record with who typed it. */
function Type({ threadId, processId, act, onDone }: TypeProps): ReactNode {
  const [text, setText] = useState("");
  const [said, setSaid] = useState("");
  const type = async (): Promise<void> => {
    const { outcome } = await api().writeInput(threadId, { processId, text: `${text}\n` });
    setText("");
    setSaid(outcome === "sent" ? `typed: ${text}` : "it lies in the pipe: the command does not read now");
    onDone();
  };
  return (
    <form
      className="deny"
      onSubmit={(event) => {
        event.preventDefault();
        act.run("Type", type);
      }}
    >
      <input
        className="in"
        aria-label="Type into this command"
        placeholder="Type a line; it is on record"
        value={text}
        onChange={(event) => setText(event.target.value)}
      />
      <button type="submit" className="btn" disabled={act.sending !== undefined}>
        {act.sending === "Type" ? "sending…" : "Type"}
      </button>
      <ActButton
        act={act}
        name="End its input"
        className="btn quiet"
        call={async () => {
          await api().writeInput(threadId, { processId, end: true });
          setSaid("its input has ended");
          onDone();
        }}
      />
      <span className="meta" role="status">
        {line(said)}
      </span>
    </form>
  );
}
