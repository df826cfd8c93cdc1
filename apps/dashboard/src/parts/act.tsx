/**
 * A button that does something on the server: nothing is shown before the answer is there, which means that it is durable.
 * Until then it says that it is sending; a refusal is shown where it was asked, in the server's words.
 */
import { useCallback, useEffect, useRef, useState, type ReactNode } from "react";
import { link } from "../live/link.ts";
import { asError } from "../live/resource.ts";
import { useStore } from "../live/store.ts";
import { line } from "../text/shown.ts";

export interface Act {
  /** What is being sent now. */
  readonly sending: string | undefined;
  readonly refusal: Error | undefined;
  readonly run: (name: string, call: () => Promise<unknown>) => void;
  readonly clear: () => void;
}

export function useAct(): Act {
  const [sending, setSending] = useState<string>();
  const [refusal, setRefusal] = useState<Error>();
  const isBusy = useRef(false);
  const run = useCallback((name: string, call: () => Promise<unknown>) => {
    if (isBusy.current) return;
    // Keys and forms come here too: nothing is kept to be sent later, when it may mean something else.
    if (link.get().state === "lost") {
      setRefusal(new Error(NOT_SENT));
      return;
    }
    isBusy.current = true;
    setSending(name);
    setRefusal(undefined);
    call()
      .catch((error: unknown) => setRefusal(asError(error)))
      .finally(() => {
        isBusy.current = false;
        setSending(undefined);
      });
  }, []);
  const clear = useCallback(() => setRefusal(undefined), []);
  return { sending, refusal, run, clear };
}

const NOT_SENT = "Not sent: there is no connection to the server.";

interface PressProps {
  readonly act: Act;
  readonly name: string;
  readonly onPress: () => void;
  readonly children?: ReactNode;
  readonly className?: string;
  readonly isOff?: boolean;
  readonly title?: string;
}
interface ActButtonProps extends Omit<PressProps, "onPress"> {
  readonly call: () => Promise<unknown>;
}

export function ActButton({ call, ...press }: ActButtonProps): ReactNode {
  return <PressButton {...press} onPress={() => press.act.run(press.name, call)} />;
}

/** Of an act that is begun elsewhere, such as one that asks first. */
export function PressButton({ act, name, onPress, children, className = "btn", isOff, title }: PressProps): ReactNode {
  const isLost = useStore(link).state === "lost";
  const isSending = act.sending === name;
  return (
    <button
      type="button"
      className={className}
      disabled={isOff === true || isLost || act.sending !== undefined}
      title={isLost ? NOT_SENT : title}
      onClick={onPress}
    >
      {isSending ? "sending…" : (children ?? name)}
    </button>
  );
}

export function Refusal({ act }: { act: Act }): ReactNode {
  if (act.refusal === undefined) return null;
  const code = "code" in act.refusal && typeof act.refusal.code === "string" ? act.refusal.code : undefined;
  const text = code === "approval.already-resolved" ? "Somebody was faster. " : "";
  return (
    <p className="refusal" role="alert">
      {text}
      {line(act.refusal.message)} {code === undefined ? null : <code>{code}</code>}
    </p>
  );
}

/** After something has appeared or moved, it cannot be answered by a press that was meant for what was there before. */
export function useSettled(key: string): boolean {
  const [settled, setSettled] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setSettled(key), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [key]);
  return settled === key;
}
const SETTLE_MS = 400;
