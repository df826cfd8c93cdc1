/** Who may come in: tokens and browsers, for owners. A new token is shown once. */
import { useState, type ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { ActButton, Refusal, useAct } from "../../parts/act.tsx";
import { Age, Icon } from "../../parts/base.tsx";
import { CopyButton } from "../../parts/copy.tsx";
import { line } from "../../text/shown.ts";

type Role = "owner" | "user" | "viewer";

export function Tokens(): ReactNode {
  const { server } = useFacts();
  return server.data?.principal.role === "owner" ? <OwnersTokens /> : null;
}

function OwnersTokens(): ReactNode {
  const act = useAct();
  const tokens = useResource("tokens", async (signal) => (await api().access.listTokens({ signal })).data);
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  const [made, setMade] = useState<string>();
  const add = async (): Promise<void> => {
    setMade((await api().access.createToken({ name: name.trim(), role })).token);
    setName("");
    tokens.reload();
  };
  return (
    <section className="set-part" aria-labelledby="tokens">
      <h2 className="h" id="tokens">
        Who may come in
      </h2>
      <ul className="found wide-list">
        {(tokens.data ?? []).map((token) => (
          <li key={token.name}>
            <Icon name={token.kind === "browser" ? "now" : "shield"} tone="fg1" />
            <span className="grow">
              <b>{line(token.name)}</b> · {token.role} · {token.kind}
              {token.of === undefined ? "" : ` of ${line(token.of)}`}
              <span className="meta">
                {" "}
                made <Age at={token.createdAt} suffix=" ago" />
                {token.lastUsedAt === undefined ? null : (
                  <>
                    , used <Age at={token.lastUsedAt} suffix=" ago" />
                  </>
                )}
                {token.agent === undefined ? "" : `, ${line(token.agent)}`}
              </span>
            </span>
            <ActButton
              act={act}
              name={`Revoke ${token.name}`}
              call={() => api().access.revokeToken(token.name).then(tokens.reload)}
            >
              Revoke
            </ActButton>
          </li>
        ))}
      </ul>
      <form
        className="row gap6"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.trim() !== "") act.run("Make a token", add);
        }}
      >
        <input
          className="in"
          aria-label="Name of a new token"
          placeholder="a name, such as ada"
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        <select className="in" aria-label="Role" value={role} onChange={(event) => setRole(event.target.value as Role)}>
          <option>viewer</option>
          <option>user</option>
          <option>owner</option>
        </select>
        <button type="submit" className="btn" disabled={name.trim() === "" || act.sending !== undefined}>
          Make a token
        </button>
      </form>
      {made === undefined ? null : (
        <p className="t12">
          Shown this once: <code className="cmd">{made}</code> <CopyButton text={made} label="Copy" />
        </p>
      )}
      <Refusal act={act} />
    </section>
  );
}
