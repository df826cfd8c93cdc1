/** The rest of what can be done with a thing, behind three dots. */
import { useEffect, useRef, useState, type ReactNode } from "react";
import { Icon } from "./base.tsx";

export interface MenuEntry {
  readonly name: string;
  readonly run: () => void;
  /** What cannot be taken back asks in place: the same button again. */
  readonly asks?: string;
  readonly isBad?: boolean;
}

export function Menu({ label, entries }: { label: string; entries: readonly MenuEntry[] }): ReactNode {
  const [isOpen, setOpen] = useState(false);
  const [asked, setAsked] = useState<string>();
  const box = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    if (!isOpen) return undefined;
    const leave = (event: Event): void => {
      if (event instanceof KeyboardEvent ? event.key === "Escape" : !box.current?.contains(event.target as Node)) {
        setOpen(false);
        if (event instanceof KeyboardEvent) box.current?.querySelector("button")?.focus();
      }
    };
    document.addEventListener("pointerdown", leave);
    document.addEventListener("keydown", leave);
    return () => {
      document.removeEventListener("pointerdown", leave);
      document.removeEventListener("keydown", leave);
    };
  }, [isOpen]);
  if (entries.length === 0) return null;
  const choose = (entry: MenuEntry): void => {
    if (entry.asks !== undefined && asked !== entry.name) {
      setAsked(entry.name);
      return;
    }
    setOpen(false);
    setAsked(undefined);
    // What was chosen is gone from the page; what it does may move the focus on.
    box.current?.querySelector("button")?.focus();
    entry.run();
  };
  return (
    <span className="menu" ref={box}>
      <button
        type="button"
        className="btn quiet sq"
        aria-label={label}
        aria-haspopup="true"
        aria-expanded={isOpen}
        onClick={() => {
          setAsked(undefined);
          setOpen(!isOpen);
        }}
      >
        <Icon name="more" />
      </button>
      {isOpen ? (
        <span className="menu-list" role="group" aria-label={label}>
          {entries.map((entry) => (
            <button
              key={entry.name}
              type="button"
              className={entry.isBad === true || asked === entry.name ? "no" : ""}
              onClick={() => choose(entry)}
            >
              {asked === entry.name ? entry.asks : entry.name}
            </button>
          ))}
        </span>
      ) : null}
    </span>
  );
}
