/** The keys of this page, and of all pages. */
import type { ReactNode } from "react";
import { Dialog } from "./dialog.tsx";

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
  ["[ ]", "previous, next file of the changes"],
  ["v, m", "viewed, comment on that file"],
  ["s", "steer"],
  ["p", "pause or resume"],
  ["x x", "interrupt"],
  ["t t", "take over"],
  ["r", "try again"],
  ["⇧V", "verify"],
];

export function KeyHelp({ onClose }: { onClose: () => void }): ReactNode {
  return (
    <Dialog label="Keys" className="key-help" onClose={onClose}>
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
    </Dialog>
  );
}
