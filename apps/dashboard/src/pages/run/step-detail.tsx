/** One step, whole: asked for when it is looked at, and dropped when one looks elsewhere. */
import type { Item } from "@heddle/protocol/http";
import { lazy, Suspense, type ComponentType, type ReactNode } from "react";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { Icon, Problem, Waiting } from "../../parts/base.tsx";
import { FileDiff } from "../../parts/diff.tsx";
import { Printed } from "../../parts/printed.tsx";
import { WholeOutput } from "../../parts/whole-output.tsx";
import { line, shown } from "../../text/shown.ts";
import { countLines } from "../../text/diff-lines.ts";
import { bytes, clock, duration } from "../../words/figures.ts";
import { tailOf, withGrown, type Grown } from "./folded.ts";
import { readReport, reportWords } from "./item-words.ts";
import type { Entry } from "./steps.ts";

const LazyMarkdown = lazy(() => import("../../parts/markdown.tsx").then(({ Markdown: draw }) => ({ default: draw })));

export interface StepDetailProps {
  readonly threadId: string;
  readonly entry: Entry;
  readonly grown: Grown | undefined;
}

export function StepDetail({ threadId, entry, grown }: StepDetailProps): ReactNode {
  const isRunning = entry.completedAt === undefined;
  const whole = useResource(
    `item:${threadId}:${entry.seq}:${entry.completedAt ?? ""}`,
    async (signal) => (await api().listItems(threadId, { after: entry.seq - 1, limit: 1 }, { signal })).data[0]?.item,
  );
  if (whole.error !== undefined && whole.data === undefined)
    return <Problem error={whole.error} onRetry={whole.reload} />;
  if (whole.data === undefined && !isRunning) return <Waiting />;
  const { item, droppedChars } = isRunning
    ? tailOf(withGrown(entry.item, grown))
    : { item: whole.data ?? entry.item, droppedChars: 0 };
  const dropped = droppedChars + (grown?.droppedChars ?? 0);
  return (
    <div className="step-detail">
      {dropped === 0 ? null : (
        <p className="cutmark">
          {bytes(dropped)} before this are not drawn while it runs; the end of the step has them
        </p>
      )}
      <Detail item={item} isRunning={isRunning} threadId={threadId} />
      <p className="meta">
        began {clock(entry.startedAt, "ms")}
        {entry.completedAt === undefined ? ", runs" : `, took ${duration(entry.completedAt - entry.startedAt)}`} · event{" "}
        {entry.seq} of its thread
      </p>
    </div>
  );
}

interface DetailProps {
  readonly item: Item;
  readonly isRunning: boolean;
  readonly Markdown?: ComponentType<{ text: string }>;
  /** Where what was left out can be asked for. */
  readonly threadId?: string;
}

export function Detail({ item, isRunning, threadId, Markdown = LazyMarkdown }: DetailProps): ReactNode {
  switch (item.type) {
    case "commandExecution":
      return <CommandDetail item={item} isRunning={isRunning} {...(threadId === undefined ? {} : { threadId })} />;
    case "fileChange":
      return item.changes.map(({ path, kind, diff, diffTruncatedBytes }) => (
        <FileDiff
          key={path}
          comments={[]}
          file={{
            path,
            kind,
            diff,
            ...countLines(diff),
            hash: `${item.id}:${path}`,
            truncatedBytes: diffTruncatedBytes,
          }}
        />
      ));
    case "agentMessage":
    case "proposedPlan":
      // What is not there yet changes what its signs mean.
      return isRunning ? (
        <p className="pre">{shown(item.text)}</p>
      ) : (
        <Suspense fallback={<p className="pre">{shown(item.text)}</p>}>
          <Markdown text={item.text} />
        </Suspense>
      );
    case "reasoning":
      return <p className="pre fg1">{shown([...item.summary, item.text ?? ""].join("\n\n"))}</p>;
    case "plan":
      return (
        <ol className="plan">
          {item.steps.map(({ text, status }) => (
            <li key={text} className={status === "completed" ? "fg2" : ""}>
              <Icon name={status === "completed" ? "check" : status === "inProgress" ? "right" : "queued"} tone="fg2" />
              <span className="vh">{status}: </span>
              {shown(text)}
            </li>
          ))}
        </ol>
      );
    case "userMessage":
      return item.content.map((part, index) => (
        <p key={index} className="pre">
          {part.type === "text" ? shown(part.text) : "[image]"}
        </p>
      ));
    case "toolCall":
      if (item.tool === "task_report") return <Report given={item.arguments} />;
      return <CallDetail item={item} output={item.output} name={item.tool} truncatedBytes={item.truncatedBytes} />;
    case "mcpToolCall":
      return (
        <CallDetail
          item={item}
          output={item.result === undefined ? undefined : JSON.stringify(item.result, null, 2)}
          name={`${item.server}: ${item.tool}`}
        />
      );
    default:
      return <pre className="out">{shown(JSON.stringify(item, null, 2))}</pre>;
  }
}

function CommandDetail({
  item,
  isRunning,
  threadId,
}: Omit<DetailProps, "item"> & { item: Extract<Item, { type: "commandExecution" }> }): ReactNode {
  return (
    <>
      <pre className="q">{shown(item.command)}</pre>
      <p className="meta">
        in <code>{line(item.cwd)}</code>
        {item.source === "user" ? " · asked for by a person" : ""}
        {item.exitCode === undefined ? "" : ` · exit ${item.exitCode}`}
        {item.signal === undefined ? "" : ` · ended by ${line(item.signal)}`}
      </p>
      {item.error === undefined ? null : <p className="refusal">{shown(item.error)}</p>}
      {item.output === "" ? (
        <p className="meta">it printed nothing{isRunning ? " yet" : ""}</p>
      ) : (
        <Printed text={item.output} isRunning={isRunning} />
      )}
      {item.truncatedBytes === undefined ? null : item.outputBlob === undefined || threadId === undefined ? (
        <p className="cutmark">
          {bytes(item.truncatedBytes)} left out in the middle
          {item.outputError === undefined ? "" : `, and not kept: ${line(item.outputError)}`}
        </p>
      ) : (
        <WholeOutput threadId={threadId} sha256={item.outputBlob} leftOutBytes={item.truncatedBytes} />
      )}
    </>
  );
}

function Report({ given }: { given: unknown }): ReactNode {
  const { text } = reportWords(given);
  const { summary, steps } = readReport(given);
  return (
    <>
      <h3 className="h">{text}</h3>
      <p className="pre says">{summary === "" ? "without a word" : shown(summary)}</p>
      {steps.length === 0 ? null : <p className="meta">steps said done: {steps.join(", ")}</p>}
    </>
  );
}

interface CallProps {
  readonly item: { readonly arguments: unknown; readonly error?: string | undefined };
  readonly name: string;
  readonly output: string | undefined;
  readonly truncatedBytes?: number | undefined;
}

function CallDetail({ item, name, output, truncatedBytes }: CallProps): ReactNode {
  return (
    <>
      <h3 className="h">{line(name)}</h3>
      <pre className="q">{shown(JSON.stringify(item.arguments, null, 2) ?? "")}</pre>
      {item.error === undefined ? null : <p className="refusal">{shown(item.error)}</p>}
      {output === undefined ? <p className="meta">no result yet</p> : <Printed text={output} isRunning={false} />}
      {truncatedBytes === undefined ? null : <p className="cutmark">{bytes(truncatedBytes)} left out</p>}
    </>
  );
}
