/** What was found about this machine and its set-up, and the line that fixes it. */
import type { ReactNode } from "react";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { Icon, Problem, Waiting } from "../../parts/base.tsx";
import { CopyButton } from "../../parts/copy.tsx";
import { line } from "../../text/shown.ts";

const LOOKS: Readonly<Record<"ok" | "absent" | "problem", { readonly icon: string; readonly tone: string }>> = {
  ok: { icon: "check", tone: "fg1" },
  absent: { icon: "off", tone: "fg2" },
  problem: { icon: "failed", tone: "no" },
};

export function Doctor(): ReactNode {
  const { data, error, reload } = useResource("doctor", (signal) => api().doctor({ signal }));
  return (
    <section className="set-part" aria-labelledby="doctor">
      <h2 className="h" id="doctor">
        This machine{" "}
        <span className="fg2">
          {data === undefined ? "" : data.problems === 0 ? "no problems" : `${data.problems} to fix`}; heddle doctor
          says the same
        </span>
      </h2>
      {error === undefined ? null : <Problem error={error} onRetry={reload} />}
      {data === undefined && error === undefined ? <Waiting lines={5} /> : null}
      <ul className="found wide-list">
        {(data?.data ?? []).map(({ name, state, detail, fix }) => (
          <li key={name}>
            <Icon name={LOOKS[state].icon} tone={LOOKS[state].tone} />
            <span className="grow">
              <span className="vh">{state}: </span>
              <b>{line(name)}</b> {line(detail)}
              {fix === undefined ? null : <span className="meta"> {line(fix)}</span>}
            </span>
            {fix === undefined ? null : <CopyButton text={fix} label="Copy" />}
          </li>
        ))}
      </ul>
    </section>
  );
}
