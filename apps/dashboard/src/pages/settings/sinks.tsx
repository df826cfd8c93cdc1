/** Who is told what, and what did not arrive. */
import type { Notification, SinkList } from "@heddle/protocol/http";
import type { ReactNode } from "react";
import { useFacts } from "../../live/facts.tsx";
import { useResource } from "../../live/resource.ts";
import { api } from "../../live/session.ts";
import { ActButton, Refusal, useAct } from "../../parts/act.tsx";
import { Age, Icon } from "../../parts/base.tsx";
import { line } from "../../text/shown.ts";

const MOST_DEAD = 50;

export function Sinks(): ReactNode {
  const { data: sinks } = useResource("sinks", async (signal) => (await api().notifications.sinks({ signal })).data, {
    on: ({ body }) => body.type.startsWith("notification."),
  });
  const dead = useResource(
    "dead",
    async (signal) => (await api().notifications.list({ state: "dead", limit: MOST_DEAD }, { signal })).data,
    {
      on: ({ body }) => body.type.startsWith("notification."),
    },
  );
  return (
    <section className="set-part" aria-labelledby="sinks">
      <h2 className="h" id="sinks">
        Notifications
      </h2>
      {sinks?.length === 0 ? <p className="meta">Nobody is told anything: there are no sinks in config.toml.</p> : null}
      <ul className="found wide-list">
        {(sinks ?? []).map((sink) => (
          <Sink key={sink.name} sink={sink} />
        ))}
      </ul>
      {dead.data === undefined || dead.data.length === 0 ? null : (
        <>
          <h3 className="ch">Did not arrive</h3>
          <ul className="found wide-list">
            {dead.data.map((one) => (
              <Dead key={one.id} one={one} onDone={dead.reload} />
            ))}
          </ul>
        </>
      )}
    </section>
  );
}

function useMayWrite(): boolean {
  const { server } = useFacts();
  return server.data !== undefined && server.data.principal.role !== "viewer";
}

function Sink({ sink }: { sink: SinkList["data"][number] }): ReactNode {
  const act = useAct();
  const mayWrite = useMayWrite();
  const test = async (): Promise<void> => {
    const { outcome, message } = await api().notifications.test(sink.name);
    if (outcome !== "delivered") throw new Error(`It did not arrive: ${message}`);
  };
  return (
    <li>
      <Icon name="bell" tone={sink.dead > 0 ? "no" : "fg1"} />
      <span className="grow">
        <b>{line(sink.name)}</b> · {line(sink.kind)} · {line(sink.target)}
        <span className="meta">
          {" "}
          {sink.delivered} delivered, {sink.queued} wait{sink.dead === 0 ? "" : ", "}
          {sink.dead === 0 ? null : <b className="no">{sink.dead} could not be delivered</b>}
        </span>
        <Refusal act={act} />
      </span>
      {mayWrite ? <ActButton act={act} name="Send a test" call={test} /> : null}
    </li>
  );
}

function Dead({ one, onDone }: { one: Notification; onDone: () => void }): ReactNode {
  const act = useAct();
  const mayWrite = useMayWrite();
  return (
    <li>
      <span className="grow">
        {line(one.event)} to {line(one.sink)}, <Age at={one.updatedAt} suffix=" ago" />
        {one.message === undefined ? "" : `: ${line(one.message)}`}
        <Refusal act={act} />
      </span>
      {mayWrite ? (
        <ActButton act={act} name="Send again" call={() => api().notifications.redeliver(one.id).then(onDone)} />
      ) : null}
    </li>
  );
}
