/** A thread begins with what its user says. Sent again after a broken connection it is the same one. */
import { useRef, useState, type ReactNode } from "react";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { Refusal, useAct } from "../../parts/act.tsx";
import { Kbd } from "../../parts/base.tsx";
import { NO_OPTIONS, turnOf, TurnOptionsFields } from "../../parts/turn-options.tsx";
import { go } from "../../router.ts";
import { line } from "../../text/shown.ts";

export function NewThread(): ReactNode {
  const [text, setText] = useState("");
  const [folder, setFolder] = useState("");
  const [options, setOptions] = useState(NO_OPTIONS);
  const act = useAct();
  const id = useRef(crypto.randomUUID());
  const folders = useResource("folders", async (signal) => (await api().recentWorkspaces({ signal })).data);
  const begin = async (): Promise<void> => {
    const thread = await api().createThread({ clientId: id.current, ...(folder === "" ? {} : { workspace: folder }) });
    await api().startTurn(thread.id, { ...turnOf(text.trim(), options), clientId: `${id.current}-turn` });
    go(`/threads/${thread.id}`);
  };
  return (
    <form
      className="new-thread"
      onSubmit={(event) => {
        event.preventDefault();
        if (text.trim() !== "") act.run("Begin", begin);
      }}
    >
      <textarea
        className="in"
        rows={2}
        aria-label="Say something to a new agent"
        placeholder="Say something: it begins a new thread, without a contract"
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.metaKey || event.ctrlKey) && text.trim() !== "") act.run("Begin", begin);
        }}
      />
      <div className="row">
        <select className="in" aria-label="Folder" value={folder} onChange={(event) => setFolder(event.target.value)}>
          <option value="">the server&apos;s own folder</option>
          {(folders.data ?? []).map((path) => (
            <option key={path} value={path}>
              {line(path)}
            </option>
          ))}
        </select>
        <span className="grow" />
        <button type="submit" className="btn" disabled={text.trim() === "" || act.sending !== undefined}>
          {act.sending === undefined ? "Begin" : "sending…"} <Kbd>⌘↵</Kbd>
        </button>
      </div>
      <TurnOptionsFields options={options} onChange={setOptions} workspace={folder === "" ? undefined : folder} />
      <Refusal act={act} />
    </form>
  );
}
