/** What a person says to the agent: into the running turn, or as a turn of their own. */
import type { ThreadDetail, Turn } from "@heddle/protocol/http";
import { useRef, useState, type ReactNode } from "react";
import { api } from "../../live/session.ts";
import { Refusal, useAct } from "../../parts/act.tsx";
import { Kbd } from "../../parts/base.tsx";
import type { Comment } from "../../parts/diff.tsx";
import { useKeys } from "../../parts/keys.ts";
import { NO_OPTIONS, turnOf, TurnOptionsFields } from "../../parts/turn-options.tsx";

interface SteerProps {
  readonly thread: ThreadDetail;
  readonly openTurn: Turn | undefined;
  readonly comments: readonly Comment[];
  readonly onSent: () => void;
  /** A turn of one's own: of a thread without a task, or of one that was taken over. */
  readonly mayStart: boolean;
  /** By the person: the task is paused for them. */
  readonly isTaken: boolean;
}

export function Steer({ thread, openTurn, comments, onSent, mayStart, isTaken }: SteerProps): ReactNode {
  const [text, setText] = useState("");
  const [options, setOptions] = useState(NO_OPTIONS);
  const act = useAct();
  const field = useRef<HTMLTextAreaElement>(null);
  /** Kept until it is answered, so that a broken connection never sends twice. */
  const clientId = useRef(crypto.randomUUID());
  useKeys({ s: () => field.current?.focus() });
  const words = [...comments.map(({ path, line, text: said }) => `> ${path}:${line}\n${said}`), text.trim()]
    .filter(Boolean)
    .join("\n\n");
  const isOff = openTurn === undefined && !mayStart;
  const isEmpty = words === "" && options.images.length === 0;
  const send = async (): Promise<void> => {
    if (openTurn === undefined)
      await api().startTurn(thread.id, { ...turnOf(words, options), clientId: clientId.current });
    else await api().steerTurn(thread.id, openTurn.id, words);
    clientId.current = crypto.randomUUID();
    setText("");
    setOptions({ ...options, images: [] });
    onSent();
  };
  const say = (): void => {
    if (!isEmpty && !isOff) act.run("Send", send);
  };
  const hint = isOff
    ? "No turn runs. Take the thread over to say something yourself."
    : openTurn === undefined
      ? "Say something: it begins a turn of yours"
      : "Steer: told to the agent at the next safe point";
  return (
    <form
      className="steer"
      onSubmit={(event) => {
        event.preventDefault();
        say();
      }}
    >
      {isTaken ? (
        <p className="taken" role="status">
          You have the thread, the task is paused. Give back lets it go on.
        </p>
      ) : null}
      <div className="steer-in">
        <textarea
          ref={field}
          className="grow"
          rows={1}
          aria-label="Steer the agent"
          placeholder={hint}
          disabled={isOff}
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && (event.metaKey || event.ctrlKey)) say();
            if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
        {comments.length === 0 ? null : (
          <span className="tag you">{comments.length === 1 ? "1 comment" : `${comments.length} comments`}</span>
        )}
        <button type="submit" className="btn quiet" disabled={isOff || isEmpty || act.sending !== undefined}>
          {act.sending === undefined ? "Send" : "sending…"} <Kbd>⌘↵</Kbd>
        </button>
      </div>
      {openTurn === undefined && mayStart ? (
        <TurnOptionsFields options={options} onChange={setOptions} workspace={thread.workspace} />
      ) : null}
      <Refusal act={act} />
    </form>
  );
}
