/** One field, and one line that says where to find what goes into it. */
import { useState, type ReactNode } from "react";
import { asError } from "../live/resource.ts";
import { loginByToken, session } from "../live/session.ts";
import { useStore } from "../live/store.ts";
import { Mark, useTitle } from "../shell.tsx";
import { line } from "../text/shown.ts";

export function Login({ problem: first }: { problem: string | undefined }): ReactNode {
  useTitle("Log in");
  const { problem: ended } = useStore(session);
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState(first);
  const [isSending, setSending] = useState(false);
  const send = (): void => {
    setSending(true);
    setProblem(undefined);
    loginByToken(token.trim())
      .catch((error: unknown) => setProblem(explained(asError(error))))
      .finally(() => setSending(false));
  };
  const shown = problem ?? ended;
  return (
    <main className="login" aria-label="Log in" id="main">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (token.trim() !== "") send();
        }}
      >
        <h1 className="mark">
          <Mark />
          Heddle
        </h1>
        <p className="fg2">{location.host}</p>
        <label className="fl">
          <span className="h">Token</span>
          <input
            className="in"
            type="password"
            name="token"
            autoComplete="current-password"
            autoFocus
            value={token}
            onChange={(event) => setToken(event.target.value)}
          />
        </label>
        {shown === undefined ? null : (
          <p className="refusal" role="alert">
            {line(shown)}
          </p>
        )}
        <button type="submit" className="btn pri" disabled={isSending || token.trim() === ""}>
          {isSending ? "sending…" : "Log in"}
        </button>
        <p className="fg2 t12">
          <code>heddle dashboard</code> opens this page logged in. Your token is in the file <code>serve.token</code> in
          Heddle&apos;s home; <code>heddle token add</code> makes one for another person.
        </p>
      </form>
    </main>
  );
}

function explained(error: Error): string {
  const code = "code" in error && typeof error.code === "string" ? error.code : "";
  if (code === "door.unauthorized") return "That token is not known here.";
  return error.message;
}
