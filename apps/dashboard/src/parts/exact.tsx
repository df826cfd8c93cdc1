/** The exact thing that is asked for, whole: it wraps, it scrolls, and whoever has to read it knows when it was read. */
import { useEffect, useRef, useState, type ReactNode } from "react";
import { strangers } from "../words/questions.ts";

interface ExactProps {
  readonly lines: readonly string[];
  /** Called when its end has been in sight. */
  readonly onSeen: () => void;
}

const SLACK_PX = 4;

export function Exact({ lines, onSeen }: ExactProps): ReactNode {
  const box = useRef<HTMLPreElement>(null);
  const [isLong, setLong] = useState(false);
  const text = lines.join("\n");
  const look = (): void => {
    const { current } = box;
    // What is not drawn, such as the dock while a phone shows another part, has not been seen.
    if (current === null || current.clientHeight === 0) return;
    const left = current.scrollHeight - current.clientHeight - current.scrollTop;
    setLong(left > SLACK_PX);
    if (left <= SLACK_PX) onSeen();
  };
  const latest = useRef(look);
  latest.current = look;
  useEffect(() => {
    const { current } = box;
    if (current === null) return undefined;
    const watcher = new ResizeObserver(() => latest.current());
    watcher.observe(current);
    return () => watcher.disconnect();
  }, [text]);
  const letters = strangers(lines.join(""));
  return (
    <>
      <pre className="q" ref={box} onScroll={look} tabIndex={isLong ? 0 : -1} aria-label="What is asked for, exactly">
        <Marked text={text} />
      </pre>
      {isLong ? <p className="meta say">It goes on: scroll to its end before you allow it.</p> : null}
      {letters.length === 0 ? null : <p className="meta say">Letters outside of ASCII: {letters.join(", ")}</p>}
    </>
  );
}

/** Letters outside ASCII are underlined: they may only look like those of the command. */
function Marked({ text }: { text: string }): ReactNode {
  const parts = text.split(/([^\x20-\x7e\n]+)/u);
  return parts.map((part, index) =>
    index % 2 === 0 ? (
      part
    ) : (
      <span key={index} className="stranger">
        {part}
      </span>
    ),
  );
}
