/** The keys of this page, and of all pages. */
import { useEffect, useRef, type ReactNode } from "react";

const EVERYWHERE: readonly (readonly [string, string])[] = [
  ["⌘K", "search or do"],
  ["g n, g t, g h, g e, g u, g s", "Now, Tasks, Threads, Evidence, Usage, Settings"],
  ["c", "new task"],
  ["/", "filter"],
  ["y", "copy the address"],
  ["?", "these keys"],
];
const LISTS: readonly (readonly [string, string])[] = [
  ["j k, Home End", "move"],
  ["↵", "open"],
  ["x", "select a task"],
  ["e", "put off, on Now"],
  ["a, d", "allow once, deny"],
];
const RUN: readonly (readonly [string, string])[] = [
  ["n, ⇧N", "next, previous problem"],
  ["f", "follow the end"],
  ["z", "fold turns"],
  ["1 2 3", "steps, changes, contract"],
  ["s", "steer"],
  ["p", "pause or resume"],
  ["x x", "interrupt"],
  ["t t", "take over"],
  ["r", "try again"],
  ["⇧V", "verify"],
];

export function KeyHelp({ onClose }: { onClose: () => void }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
  }, []);
  return (
    <dialog
      ref={dialog}
      className="palette"
      aria-label="Keys"
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <div className="palette-in key-help">
        {(
          [
            ["Everywhere", EVERYWHERE],
            ["Lists and questions", LISTS],
            ["A run", RUN],
          ] as const
        ).map(([name, keys]) => (
          <section key={name}>
            <h2 className="h">{name}</h2>
            <dl>
              {keys.map(([key, what]) => (
                <div key={key}>
                  <dt>
                    <kbd>{key}</kbd>
                  </dt>
                  <dd>{what}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
        <p className="meta">Single keys can be turned off in Settings.</p>
        <button type="button" className="btn" onClick={onClose}>
          Close
        </button>
      </div>
    </dialog>
  );
}
