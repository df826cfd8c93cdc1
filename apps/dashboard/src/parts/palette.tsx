/** Everything by name: places, tasks, threads, and the keys of this page. */
import { useMemo, useState, type ReactNode } from "react";
import { useFacts } from "../live/facts.tsx";
import { useResource } from "../live/resource.ts";
import { api } from "../live/session.ts";
import { threadName } from "../pages/run/thread-page.tsx";
import { go } from "../router.ts";
import { PLACES } from "../shell.tsx";
import { line } from "../text/shown.ts";
import { folderName } from "../words/figures.ts";
import { Icon } from "./base.tsx";
import { Dialog } from "./dialog.tsx";
import { scored } from "./score.ts";

interface Entry {
  readonly name: string;
  readonly rest: string;
  readonly icon: string;
  readonly run: () => void;
}

const MOST = 12;

export function Palette({ onClose }: { onClose: () => void }): ReactNode {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const entries = useEntries();
  const shown = useMemo(
    () => scored(entries, text, ({ name, rest }) => `${name} ${rest}`).slice(0, MOST),
    [entries, text],
  );
  const run = (entry: Entry | undefined): void => {
    if (entry === undefined) return;
    onClose();
    entry.run();
  };
  return (
    <Dialog label="Search or do" onClose={onClose}>
      <input
        autoFocus
        className="in"
        aria-label="Search or do"
        placeholder="A place, a task, a thread"
        role="combobox"
        aria-expanded="true"
        aria-controls="found"
        aria-activedescendant={shown[at] === undefined ? undefined : `found-${at}`}
        value={text}
        onChange={(event) => {
          setText(event.target.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            event.preventDefault();
            setAt(Math.max(0, Math.min(shown.length - 1, at + (event.key === "ArrowDown" ? 1 : -1))));
          } else if (event.key === "Enter") run(shown[at]);
        }}
      />
      <ul id="found" role="listbox" aria-label="Found">
        {shown.map((entry, index) => (
          <li
            key={`${entry.icon}${entry.name}${entry.rest}`}
            id={`found-${index}`}
            role="option"
            aria-selected={index === at}
            onClick={() => run(entry)}
            onPointerMove={() => setAt(index)}
          >
            <Icon name={entry.icon} tone="fg2" />
            <span className="cut">{entry.name}</span>
            <span className="fg2 t12 cut">{entry.rest}</span>
          </li>
        ))}
        {shown.length === 0 ? <li className="fg2">Nothing is called that.</li> : null}
      </ul>
    </Dialog>
  );
}

function useEntries(): readonly Entry[] {
  const { state, stopped, server } = useFacts();
  const isViewer = server.data?.principal.role === "viewer";
  const threads = useResource(
    "palette-threads",
    async (signal) => (await api().listThreads({ limit: 100 }, { signal })).data,
  );
  return useMemo(() => {
    const tasks = new Map([...(state.data?.tasks ?? []), ...(stopped.data ?? [])].map((task) => [task.id, task]));
    return [
      ...PLACES.map(({ path, name, icon, key }): Entry => ({ name, rest: `g ${key}`, icon, run: () => go(path) })),
      ...(isViewer ? [] : [{ name: "New task", rest: "c", icon: "plus", run: () => go("/new") }]),
      ...[...tasks.values()].map((task): Entry => ({
        name: line(task.name),
        rest: `${task.state}, ${line(folderName(task.workspace))}`,
        icon: "tasks",
        run: () => go(`/tasks/${task.id}`),
      })),
      ...(threads.data ?? []).map((thread): Entry => ({
        name: threadName(thread),
        rest: `thread in ${line(folderName(thread.workspace))}`,
        icon: "thread",
        run: () => go(`/threads/${thread.id}`),
      })),
      { name: "Copy the address", rest: "y", icon: "copy", run: copyAddress },
    ];
  }, [state.data, stopped.data, threads.data, isViewer]);
}

export function copyAddress(): void {
  navigator.clipboard.writeText(location.href).catch(() => undefined);
}
