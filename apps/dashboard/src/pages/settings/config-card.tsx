/** How the server is set up: what it carries out, where, for whom. A file decides each of it, so it is shown and not changed. */
import type { ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { Icon, Problem, Waiting } from "../../parts/base.tsx";
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

/** What a turn would be held by, and which models can be asked. */
export function HostCard(): ReactNode {
  const { server } = useFacts();
  const models = useResource("models", async (signal) => (await api().models({}, { signal })).data);
  const backends = server.data?.sandbox.backends ?? [];
  return (
    <section className="set-part" aria-labelledby="host">
      <h2 className="h" id="host">
        This machine
      </h2>
      <ul className="found">
        {backends.map(({ name, isUsable, problem }) => (
          <li key={name}>
            <Icon name={isUsable ? "check" : "off"} tone="fg1" />
            <span>
              sandbox by {line(name)}: {isUsable ? "usable" : line(problem ?? "not usable")}
            </span>
          </li>
        ))}
        {(models.data ?? []).map(({ provider, isLoggedIn, isStale, models: all, problem }) => (
          <li key={provider}>
            <Icon
              name={!isLoggedIn ? "off" : problem === undefined ? "check" : "failed"}
              tone={!isLoggedIn ? "fg2" : problem === undefined ? "fg1" : "no"}
            />
            <span>
              {line(provider)}:{" "}
              {problem === undefined
                ? isLoggedIn
                  ? `${all.length} models${isStale ? ", list is old" : ""}`
                  : "no key or login"
                : line(problem.message)}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
