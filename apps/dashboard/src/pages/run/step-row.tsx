/** Rows of the story: a step, the heading of a turn, a claim, a round of checks, a stall where it happened. */
import { useContext, type ReactNode } from "react";
import { Icon } from "../../parts/base.tsx";
import { Still } from "../../parts/still.ts";
import { brief, line } from "../../text/shown.ts";
import { clock, cost, duration, fullTime, tokens } from "../../words/figures.ts";
import { itemWords, type ItemWords } from "./item-words.ts";
import { StallCard } from "./stall-card.tsx";
import { whoIs, type Entry, type Row } from "./steps.ts";

type RowOf<K extends Row["kind"]> = Extract<Row, { kind: K }>;

interface TurnLineProps {
  readonly row: RowOf<"turn">;
  readonly isFolded: boolean;
  readonly onFold: () => void;
  readonly isSticky?: boolean;
  readonly isSelected?: boolean;
  readonly onSelect?: () => void;
}

export function TurnLine({ row, isFolded, onFold, isSticky, isSelected, onSelect }: TurnLineProps): ReactNode {
  const { turn, number, why } = row;
  const used = turn.usage.inputTokens + turn.usage.outputTokens;
  const price = turn.costUsd === undefined ? "price unknown" : cost({ known: turn.costUsd, isPartial: false });
  const time = turn.durationMs === undefined ? turn.status : duration(turn.durationMs);
  const isStill = useContext(Still);
  const Box = isStill ? "summary" : "div";
  return (
    <Box className={`turn${isSticky === true ? " stick" : ""}${isSelected === true ? " sel" : ""}`}>
      {isStill ? (
        <time dateTime={new Date(row.at).toISOString()}>{clock(row.at, "minute")}</time>
      ) : (
        <button type="button" className="fold" aria-expanded={!isFolded} aria-label={`Turn ${number}`} onClick={onFold}>
          <Icon name={isFolded ? "right" : "down"} small />
        </button>
      )}
      <h3>
        {isStill ? (
          <b>Turn {number}</b>
        ) : (
          <button type="button" aria-current={isSelected} onClick={onSelect}>
            <b>Turn {number}</b>
          </button>
        )}
      </h3>
      <span className="cut">{why}</span>
      <span className="grow" />
      <span className="fig">
        {tokens(used)} tokens · {price} ·{" "}
        {turn.status === "completed" || turn.status === "open" ? time : `${turn.status}, ${time}`}
      </span>
    </Box>
  );
}

interface StepRowProps {
  readonly row: Exclude<Row, { kind: "turn" }>;
  readonly isSelected: boolean;
  readonly onSelect: () => void;
  readonly taskId: string | undefined;
}

export function StepRow({ row, isSelected, onSelect, taskId }: StepRowProps): ReactNode {
  switch (row.kind) {
    case "item":
      return <ItemRow entry={row.entry} isSelected={isSelected} onSelect={onSelect} />;
    case "claim":
      return (
        <Line at={row.at} icon="flag" className="claim" isSelected={isSelected} onSelect={onSelect}>
          <span className="grow two">
            <b>{row.claim.by === "user" ? "A person's word:" : "Claims done:"}</b>{" "}
            {row.claim.summary === "" ? "without a word" : `“${brief(row.claim.summary, 400)}”`}
          </span>
        </Line>
      );
    case "checks":
      return <ChecksRow row={row} isSelected={isSelected} onSelect={onSelect} />;
    case "stall":
      return <StallCard row={row} taskId={taskId} />;
    case "note":
      return (
        <Line
          at={row.at}
          icon={row.tone === "ok" ? "verified" : row.tone === "no" ? "failed" : "after"}
          isSelected={isSelected}
          onSelect={onSelect}
          className={`note ${row.tone}`}
        >
          <span className="grow two">
            {brief(row.text, 400)}
            {row.author === "system" ? null : <span className="fg2"> by {whoIs(row.author)}</span>}
          </span>
        </Line>
      );
  }
}

interface LineProps {
  readonly at: number;
  readonly icon: string;
  readonly className?: string;
  readonly isSelected: boolean;
  readonly onSelect: () => void;
  readonly children: ReactNode;
}

function Line({ at, icon, className = "", isSelected, onSelect, children }: LineProps): ReactNode {
  return (
    <Choice className={`st ${className}`} isSelected={isSelected} onSelect={onSelect}>
      <time dateTime={new Date(at).toISOString()} title={fullTime(at)}>
        {clock(at).slice(3)}
      </time>
      <span className="knot">
        <Icon name={icon} />
      </span>
      {children}
    </Choice>
  );
}

type ChoiceProps = Pick<LineProps, "isSelected" | "onSelect" | "children"> & { readonly className: string };

/** What leads to the whole step: beside the list on the page, below its line in a file. */
function Choice({ className, isSelected, onSelect, children }: ChoiceProps): ReactNode {
  if (useContext(Still)) return <summary className={className}>{children}</summary>;
  return (
    <button
      type="button"
      className={`${className}${isSelected ? " sel" : ""}`}
      aria-current={isSelected}
      onClick={onSelect}
    >
      {children}
    </button>
  );
}

function ItemRow({
  entry,
  isSelected,
  onSelect,
}: {
  entry: Entry;
  isSelected: boolean;
  onSelect: () => void;
}): ReactNode {
  const { item, startedAt, completedAt } = entry;
  const words = itemWords(item);
  const isUnknown = "status" in item && item.status === "unknown";
  const time =
    "durationMs" in item && item.durationMs !== undefined
      ? item.durationMs
      : completedAt === undefined
        ? undefined
        : completedAt - startedAt;
  const isMeasured = words.isCode || item.type === "contextCompaction";
  return (
    <Line
      at={startedAt}
      icon={isUnknown ? "ask" : words.icon}
      className={words.isDim === true ? "dim" : ""}
      isSelected={isSelected}
      onSelect={onSelect}
    >
      <span className={words.isCode ? "grow cut" : "grow two"}>
        <ItemText words={words} />
        {isUnknown ? <span className="say"> Heddle died while it ran; nobody can say what it did</span> : null}
      </span>
      {words.end === undefined && !isMeasured ? null : (
        <>
          <span className="ex">
            {words.end === undefined ? null : (
              <span className={words.end.isBad ? "exit bad" : "exit"}>{words.end.text}</span>
            )}
          </span>
          <span className="du">
            {isMeasured && time !== undefined && completedAt !== undefined ? duration(time) : ""}
          </span>
        </>
      )}
    </Line>
  );
}

function ItemText({ words }: { words: ItemWords }): ReactNode {
  if (words.files !== undefined)
    return words.files.map(({ path, added, removed, kind }) => (
      <span key={path} className="pmf">
        <code>{short(path)}</code>{" "}
        <span className="pm">
          {kind === "add" ? <b>new </b> : kind === "delete" ? <i>gone </i> : null}
          {added === 0 ? null : <b>+{added}</b>} {removed === 0 ? null : <i>−{removed}</i>}
        </span>{" "}
      </span>
    ));
  return (
    <>
      {words.isCode ? <code>{words.text}</code> : words.isDim === true ? <em>{words.text}</em> : words.text}
      {words.rest === undefined || words.rest === "" ? null : <span className="fg2"> {words.rest}</span>}
    </>
  );
}

/** The last two parts: what a file is known by. */
function short(path: string): string {
  return path.split("/").slice(-2).join("/");
}

function ChecksRow({
  row,
  isSelected,
  onSelect,
}: {
  row: RowOf<"checks">;
  isSelected: boolean;
  onSelect: () => void;
}): ReactNode {
  const { results, violations, passed, durationMs, review } = row.checks;
  const good = results.filter(({ outcome }) => outcome === "passed").length;
  const bad = results.filter(({ outcome }) => outcome !== "passed").map(({ name }) => line(name));
  const ms = durationMs ?? results.reduce((sum, result) => sum + result.durationMs, 0);
  const isPut = passed && review !== undefined;
  const tone = !passed ? "no" : isPut ? "say" : "plain";
  return (
    <Choice className={`verdict ${tone}`} isSelected={isSelected} onSelect={onSelect}>
      <Icon name={!passed ? "rejected" : isPut ? "ask" : "check"} />
      <span className="grow cut">
        <b>{!passed ? "Rejected." : isPut ? "Put to you." : "Checks passed."}</b> {good} of {results.length}{" "}
        {results.length === 1 ? "check" : "checks"} passed
        {bad.length === 0 ? "" : `; not passed: ${bad.map((name) => `“${name}”`).join(", ")}`}
        {violations.map(({ message }) => `; violation: ${line(message)}`)}
      </span>
      <span className="du">{duration(ms)}</span>
    </Choice>
  );
}
