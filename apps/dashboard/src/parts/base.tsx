/** The smallest shapes: icons, links, keys, ages, segmented choices. */
import type { Tone } from "@heddle/protocol/task-words";
import type { MouseEvent, ReactNode } from "react";
import { useNow } from "../live/link.ts";
import { go } from "../router.ts";
import { line } from "../text/shown.ts";
import { age, fullTime } from "../words/figures.ts";

/** The class of a tone: only what is proven is green. */
export const TONE_CLASS: Readonly<Record<Tone, string>> = {
  proven: "ok",
  said: "say",
  refused: "no",
  yours: "you",
  plain: "fg1",
  quiet: "fg2",
};

export function Icon({ name, tone, small }: { name: string; tone?: string; small?: boolean }): ReactNode {
  const spin = name === "running" ? " spin" : "";
  return <span className={`i i-${name}${small === true ? " i-12" : ""}${spin} ${tone ?? ""}`} aria-hidden="true" />;
}

interface LinkProps {
  readonly to: string;
  readonly children: ReactNode;
  readonly className?: string;
  readonly isCurrent?: boolean;
  readonly label?: string;
  readonly title?: string;
}

/** A real link: it can be opened in a tab of its own and copied. */
export function Link({ to, children, className, isCurrent, label, title }: LinkProps): ReactNode {
  const follow = (event: MouseEvent): void => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    go(to);
  };
  return (
    <a
      href={to}
      className={className}
      onClick={follow}
      aria-current={isCurrent === true ? "page" : undefined}
      aria-label={label}
      title={title}
    >
      {children}
    </a>
  );
}

export function Kbd({ children }: { children: ReactNode }): ReactNode {
  return <kbd aria-hidden="true">{children}</kbd>;
}

/** How long ago; the full time as its title. Without a sign of the server it is at least as long. */
export function Age({ at, suffix = "" }: { at: number; suffix?: string }): ReactNode {
  const now = useNow();
  return (
    <time dateTime={new Date(at).toISOString()} title={fullTime(at)}>
      {now.isFrozen ? "≥ " : ""}
      {age(now.at - at)}
      {suffix}
    </time>
  );
}

export interface Choice<V extends string> {
  readonly value: V;
  readonly label: ReactNode;
}

interface SegmentsProps<V extends string> {
  readonly label: string;
  readonly choices: readonly Choice<V>[];
  readonly value: V;
  readonly onChoose: (value: V) => void;
  readonly isSmall?: boolean;
}

export function Segments<V extends string>(props: SegmentsProps<V>): ReactNode {
  const { label, choices, value, onChoose, isSmall } = props;
  return (
    <span className={isSmall === true ? "seg sm" : "seg"} role="group" aria-label={label}>
      {choices.map((choice) => (
        <button
          key={choice.value}
          type="button"
          aria-pressed={choice.value === value}
          onClick={() => onChoose(choice.value)}
        >
          {choice.label}
        </button>
      ))}
    </span>
  );
}

/** What a person or a program must see of a failure: the server's words and its code. */
export function Problem({ error, onRetry }: { error: Error; onRetry?: (() => void) | undefined }): ReactNode {
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  return (
    <div className="problem" role="alert">
      <Icon name="failed" tone="no" />
      <span className="grow">
        {line(error.message)} {code === undefined ? null : <code className="fg2">{code}</code>}
      </span>
      {onRetry === undefined ? null : (
        <button type="button" className="btn" onClick={onRetry}>
          Try again
        </button>
      )}
    </div>
  );
}

/** Grey lines in the final places, after a moment; nothing jumps when the rest comes. */
export function Waiting({ lines = 4 }: { lines?: number }): ReactNode {
  return (
    <div className="waiting" role="status" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <span key={index} />
      ))}
    </div>
  );
}
