/** How the server is set up: what it carries out, where, for whom. A file decides each of it, so it is shown and not changed. */
import type { ReactNode } from "react";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { Problem, Waiting } from "../../parts/base.tsx";
import { line } from "../../text/shown.ts";

export function ConfigCard(): ReactNode {
  const { data, error, reload } = useResource("config", (signal) => api().config({ signal }));
  if (error !== undefined) return <Problem error={error} onRetry={reload} />;
  if (data === undefined) return <Waiting />;
  const list = (texts: readonly string[]): string => (texts.length === 0 ? "none" : texts.map(line).join(", "));
  const rows: readonly (readonly [string, string])[] = [
    [
      "tasks",
      data.carriesOutTasks
        ? `carried out here, ${data.concurrency} at a time`
        : "not carried out here; start heddle watch",
    ],
    ["folders", data.workspaceRoots === null ? "any" : list(data.workspaceRoots)],
    ["inboxes", list(data.inboxes)],
    ["webhooks", list(data.webhooks.map(({ name, isSigned }) => `${name}${isSigned ? "" : " (not signed)"}`))],
  ];
  return (
    <section className="set-part" aria-labelledby="config">
      <h2 className="h" id="config">
        Configuration <span className="fg2">changed in config.toml in Heddle&apos;s home; heddle doctor checks it</span>
      </h2>
      <dl className="set">
        {rows.map(([name, value]) => (
          <Pair key={name} name={name} value={value} />
        ))}
      </dl>
    </section>
  );
}

function Pair({ name, value }: { name: string; value: ReactNode }): ReactNode {
  return (
    <>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </>
  );
}
