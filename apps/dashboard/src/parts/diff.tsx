/** Changes of files: blue in, rust out, because green is a verdict. Long files are folded, and only so much is drawn. */
import { Fragment, useContext, useMemo, useState, type ReactNode } from "react";
import { keep, readKept } from "../preferences.ts";
import { changedWords, diffRows, type DiffRow, type Mark } from "../text/diff-lines.ts";
import { line, shown } from "../text/shown.ts";
import { Icon } from "./base.tsx";
import { Still } from "./still.ts";

export interface ChangedFile {
  readonly path: string;
  readonly kind: string;
  readonly added?: number | undefined;
  readonly removed?: number | undefined;
  readonly diff?: string | undefined;
  /** Of its content: Viewed holds for this content alone. */
  readonly hash: string;
  readonly note?: string | undefined;
  readonly truncatedBytes?: number | undefined;
}
export interface Comment {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

interface FileProps {
  readonly file: ChangedFile;
  readonly comments: readonly Comment[];
  readonly onComment?: ((comment: Comment) => void) | undefined;
  /** The one that keys act on. */
  readonly isCurrent?: boolean;
}

const FOLDED_FROM = 1_000;
const MOST_ROWS = 5_000;
const ROWS_A_PART = 100;
const VIEWED = "heddle.viewed";
const MOST_VIEWED = 500;

export function FileDiff({ file, comments, onComment, isCurrent }: FileProps): ReactNode {
  const rows = useMemo(() => diffRows(file.diff ?? ""), [file.diff]);
  const [viewed, setViewed] = useState(() => (readKept<string[]>(VIEWED) ?? []).includes(file.hash));
  const [isOpen, setOpen] = useState(!viewed && rows.length <= FOLDED_FROM);
  const isStill = useContext(Still);
  const view = (is: boolean): void => {
    const others = (readKept<string[]>(VIEWED) ?? []).filter((hash) => hash !== file.hash);
    keep(VIEWED, is ? [...others.slice(-MOST_VIEWED), file.hash] : others);
    setViewed(is);
    setOpen(!is);
  };
  const head = (
    <>
      <code className="grow cut">{line(file.path)}</code>
      {file.kind === "update" || file.kind === "changed" ? null : (
        <span className="tag">{file.kind === "add" || file.kind === "added" ? "new" : "removed"}</span>
      )}
      {file.note === undefined ? null : <span className="tag say">{file.note}</span>}
      <PlusMinus added={file.added ?? 0} removed={file.removed ?? 0} />
    </>
  );
  const name = line(file.path);
  if (isStill)
    return (
      <article className="file" aria-label={name}>
        <details open={rows.length <= FOLDED_FROM}>
          <summary>{head}</summary>
          <Body file={file} rows={rows} comments={comments} />
        </details>
      </article>
    );
  return (
    <article className="file" aria-label={name} aria-current={isCurrent === true ? "true" : undefined}>
      <header>
        <button
          type="button"
          className="fold"
          aria-expanded={isOpen}
          aria-label={`${name}, ${rows.length} lines`}
          onClick={() => setOpen(!isOpen)}
        >
          <Icon name={isOpen ? "down" : "right"} small tone="fg2" />
        </button>
        {head}
        <label className="seen">
          <input type="checkbox" checked={viewed} onChange={(event) => view(event.target.checked)} />
          Viewed
        </label>
      </header>
      {isOpen ? <Body file={file} rows={rows} comments={comments} onComment={onComment} /> : null}
    </article>
  );
}

function Body({ file, rows, comments, onComment }: FileProps & { readonly rows: readonly DiffRow[] }): ReactNode {
  const [at, setAt] = useState<number>();
  const marks = useMemo(() => changedWords(rows), [rows]);
  const parts = useMemo(() => partsOf(rows.slice(0, MOST_ROWS)), [rows]);
  const lineOf = (row: DiffRow, index: number): ReactNode => (
    <>
      <Line
        row={row}
        mark={marks.get(index)}
        onPick={onComment === undefined || row.after === undefined ? undefined : () => setAt(row.after)}
      />
      {comments
        .filter((comment) => comment.line === row.after && row.sign !== "-")
        .map((comment) => (
          <Note key={comment.text} text={comment.text} />
        ))}
      {at !== undefined && at === row.after && row.sign !== "-" && onComment !== undefined ? (
        <Write
          onDone={(text) => {
            if (text !== "") onComment({ path: file.path, line: at, text });
            setAt(undefined);
          }}
        />
      ) : null}
    </>
  );
  return (
    <>
      {parts.map((part, at) => (
        <Part key={at} rows={part}>
          {(row, index) => lineOf(row, at * ROWS_A_PART + index)}
        </Part>
      ))}
      {rows.length > MOST_ROWS ? (
        <p className="cutmark">{rows.length - MOST_ROWS} lines more are not drawn here</p>
      ) : null}
      {(file.truncatedBytes ?? 0) > 0 ? (
        <p className="cutmark">{file.truncatedBytes} bytes of this diff were left out</p>
      ) : null}
      {file.diff === undefined ? <p className="cutmark">no text to compare</p> : null}
    </>
  );
}

function partsOf(rows: readonly DiffRow[]): readonly (readonly DiffRow[])[] {
  return Array.from({ length: Math.ceil(rows.length / ROWS_A_PART) }, (_, part) =>
    rows.slice(part * ROWS_A_PART, (part + 1) * ROWS_A_PART),
  );
}

interface PartProps {
  readonly rows: readonly DiffRow[];
  readonly children: (row: DiffRow, index: number) => ReactNode;
}

/** In a box of its own, because a browser can leave out of its work what is far from the screen, but not rows of a table. */
function Part({ rows, children }: PartProps): ReactNode {
  return (
    <div className={rows.length < ROWS_A_PART ? undefined : "diff-part"}>
      <table className="diff">
        <colgroup>
          <col className="cn" />
          <col className="cn" />
          <col className="cs" />
          <col />
        </colgroup>
        <tbody>
          {rows.map((row, index) => (
            <Fragment key={index}>{children(row, index)}</Fragment>
          ))}
        </tbody>
      </table>
    </div>
  );
}

export function PlusMinus({ added, removed }: { added: number; removed: number }): ReactNode {
  return (
    <span className="pm">
      {added === 0 ? null : <b>+{added}</b>} {removed === 0 ? null : <i>−{removed}</i>}
    </span>
  );
}

interface LineProps {
  readonly row: DiffRow;
  readonly mark: Mark | undefined;
  readonly onPick: (() => void) | undefined;
}

function Line({ row, mark, onPick }: LineProps): ReactNode {
  if (row.sign === "@")
    return (
      <tr className="hunk">
        <td colSpan={4}>{row.text === "" ? "…" : shown(row.text)}</td>
      </tr>
    );
  const name = row.sign === "+" ? "a" : row.sign === "-" ? "d" : "c";
  return (
    <tr className={name}>
      <td>{row.before}</td>
      <td>
        {onPick === undefined ? (
          row.after
        ) : (
          <button type="button" className="ln-btn" onClick={onPick} aria-label={`Comment on line ${row.after}`}>
            {row.after}
          </button>
        )}
      </td>
      <td>{row.sign === "-" ? "−" : row.sign}</td>
      <td>{mark === undefined ? shown(row.text) : <Marked text={row.text} mark={mark} />}</td>
    </tr>
  );
}

function Marked({ text, mark: [from, to] }: { text: string; mark: Mark }): ReactNode {
  return (
    <>
      {shown(text.slice(0, from))}
      <mark>{shown(text.slice(from, to))}</mark>
      {shown(text.slice(to))}
    </>
  );
}

function Note({ text }: { text: string }): ReactNode {
  return (
    <tr className="note">
      <td colSpan={4}>
        <div className="note-in">
          <p className="fg2">You, sent with the next steering</p>
          <p>{shown(text)}</p>
        </div>
      </td>
    </tr>
  );
}

function Write({ onDone }: { onDone: (text: string) => void }): ReactNode {
  const [text, setText] = useState("");
  return (
    <tr className="note">
      <td colSpan={4}>
        <textarea
          className="note-in"
          autoFocus
          aria-label="Comment on this line"
          placeholder="Sent with the next steering. Escape leaves it."
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape") onDone("");
            if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) onDone(text.trim());
          }}
        />
        <button type="button" className="btn" onClick={() => onDone(text.trim())}>
          Keep for the next steering
        </button>
      </td>
    </tr>
  );
}
