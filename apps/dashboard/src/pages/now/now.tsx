/** The morning, the phone, the glance: what waits, what has stopped, what runs, what it cost. */
import { useEffect, useRef, useState, type ReactNode, type RefObject } from "react";
import { Age, Icon, Kbd, Problem, Waiting } from "../../parts/base.tsx";
import { useFacts } from "../../live/facts.tsx";
import { useNow } from "../../live/link.ts";
import { keep, readKept } from "../../preferences.ts";
import { go, look, usePlace } from "../../router.ts";
import { useKeys } from "../../parts/keys.ts";
import { useTitle } from "../../shell.tsx";
import { when } from "../../words/figures.ts";
import { BANDS, mattersOf, type Band, type Matter } from "./matters.ts";
import { MatterRow } from "./matter-row.tsx";
import { Beside } from "./beside.tsx";

const SEEN_KEY = "heddle.lastHere";
const PUT_OFF_KEY = "heddle.putOff";
const PUT_OFF_MS = 3_600_000;
const MOST_IN_BAND = 50;

/** Those that this browser has put off for an hour; a matter that changes has another id. */
export function usePutOff(): { readonly hidden: ReadonlySet<string>; readonly putOff: (id: string) => void } {
  const now = useNow();
  const [kept, setKept] = useState<Readonly<Record<string, number>>>(() => readKept(PUT_OFF_KEY) ?? {});
  const hidden = new Set(Object.keys(kept).filter((id) => now.at - (kept[id] ?? 0) < PUT_OFF_MS));
  const putOff = (id: string): void => {
    const live = Object.fromEntries(Object.entries(kept).filter(([one]) => hidden.has(one)));
    const next = { ...live, [id]: now.at };
    setKept(next);
    keep(PUT_OFF_KEY, next);
  };
  return { hidden, putOff };
}

export function Now(): ReactNode {
  const { state, approvals, stopped } = useFacts();
  const { query } = usePlace();
  const { hidden, putOff } = usePutOff();
  const isReady = state.data !== undefined && approvals.data !== undefined && stopped.data !== undefined;
  const all = isReady ? mattersOf({ state: state.data, approvals: approvals.data, stopped: stopped.data }) : [];
  const matters = all.filter(({ id }) => !hidden.has(id));
  const shown = useLingering(matters);
  const waiting = matters.filter(({ band }) => band === "you").length;
  useTitle(waiting > 1 ? `${waiting} wait for you` : waiting === 1 ? "1 waits for you" : "Now");
  const selected = useSelected(matters, query.get("sel"));
  useListKeys(matters, selected, putOff);
  const error = state.error ?? approvals.error ?? stopped.error;
  const list = useRef<HTMLElement>(null);
  useKeptFocus(list);
  const [below, seen] = useNewBelow(list, isReady ? shown : undefined);
  return (
    <main className="now" aria-label="Now" id="main">
      <header className="top">
        <h1>Now</h1>
        <Summary matters={matters} />
        <span className="grow" />
        <LastHere />
      </header>
      <p className="vh" role="status">
        {waiting === 0 ? "" : waiting === 1 ? "1 agent waits for you" : `${waiting} agents wait for you`}
      </p>
      <div className="now-cols">
        <section aria-label="What needs you" ref={list}>
          {error === undefined ? null : <Problem error={error} onRetry={state.reload} />}
          {isReady ? null : <Waiting lines={6} />}
          {isReady && matters.length === 0 ? <Empty hidden={all.length} /> : null}
          {(Object.keys(BANDS) as Band[]).map((band) => (
            <BandList
              key={band}
              band={band}
              matters={shown.filter((matter) => matter.band === band)}
              current={matters}
              selected={selected}
              onPutOff={putOff}
            />
          ))}
          {matters.length === 0 ? null : <KeyLine />}
          {below.length === 0 ? null : (
            <button
              type="button"
              className="newer btn"
              onClick={() => {
                look({ sel: below[0] });
                seen();
              }}
            >
              <Icon name="down" small /> {below.length} new
            </button>
          )}
        </section>
        <Beside since={readKept<number>(SEEN_KEY)} />
      </div>
    </main>
  );
}

/** What has come since the page was opened and was not in sight yet; nothing moves for it. */
function useNewBelow(
  list: { readonly current: HTMLElement | null },
  matters: readonly Matter[] | undefined,
): readonly [below: readonly string[], seen: () => void] {
  const known = useRef<Set<string>>(undefined);
  const [below, setBelow] = useState<readonly string[]>([]);
  const ids = matters?.map(({ id }) => id).join("\n");
  useEffect(() => {
    if (ids === undefined) return undefined;
    const all = ids.split("\n").filter(Boolean);
    const first = known.current === undefined;
    known.current ??= new Set(all);
    const fresh = all.filter((id) => known.current?.has(id) === false);
    for (const id of all) known.current.add(id);
    if (!first)
      setBelow((before) => [...before, ...fresh].filter((id) => all.includes(id) && !isInSight(list.current, id)));
    const look = (): void => setBelow((before) => before.filter((id) => !isInSight(list.current, id)));
    document.addEventListener("scroll", look, { capture: true, passive: true });
    return () => document.removeEventListener("scroll", look, { capture: true });
  }, [ids, list]);
  return [below, () => setBelow([])];
}

function isInSight(list: HTMLElement | null, id: string): boolean {
  const row = list?.querySelector(`[data-id="${CSS.escape(id)}"]`)?.getBoundingClientRect();
  return row !== undefined && row.top < window.innerHeight - row.height / 2;
}

/** Where the selected one has gone, the next takes its place. */
function useSelected(matters: readonly Matter[], id: string | null): Matter | undefined {
  const last = useRef(0);
  const found = matters.findIndex((matter) => matter.id === id);
  if (found >= 0) last.current = found;
  else if (id === null) last.current = 0;
  return matters[found >= 0 ? found : Math.min(last.current, matters.length - 1)];
}

/** The focus is never lost with the row that had it: the selected one has it then. */
function useKeptFocus(list: RefObject<HTMLElement | null>): void {
  const isHere = useRef(false);
  useEffect(() => {
    const moved = ({ target }: FocusEvent): void => {
      isHere.current = target instanceof Node && list.current?.contains(target) === true;
    };
    document.addEventListener("focusin", moved);
    return () => document.removeEventListener("focusin", moved);
  }, [list]);
  useEffect(() => {
    if (isHere.current && document.activeElement === document.body)
      list.current?.querySelector<HTMLElement>("li.ask.sel")?.focus();
  });
}

/** An answered question stays for a moment, so that what became of it can be read. */
const LINGER_MS = 3_000;

function useLingering(matters: readonly Matter[]): readonly Matter[] {
  const known = useRef(new Map<string, { matter: Matter; goneAt: number | undefined }>());
  const current = new Set(matters.map(({ id }) => id));
  for (const matter of matters)
    if (matter.of.kind === "approval") known.current.set(matter.id, { matter, goneAt: undefined });
  const gone: Matter[] = [];
  for (const [id, kept] of known.current) {
    if (current.has(id)) continue;
    kept.goneAt ??= Date.now();
    if (Date.now() - kept.goneAt < LINGER_MS) gone.push(kept.matter);
    else known.current.delete(id);
  }
  if (gone.length === 0) return matters;
  const isFirst = (matter: Matter): boolean => matter.band === "you";
  const you = [...matters.filter(isFirst), ...gone].toSorted((a, c) => a.at - c.at);
  return [...you, ...matters.filter((matter) => !isFirst(matter))];
}

function useListKeys(matters: readonly Matter[], selected: Matter | undefined, putOff: (id: string) => void): void {
  const index = selected === undefined ? -1 : matters.indexOf(selected);
  const move = (by: number): void => {
    const next = matters[Math.min(matters.length - 1, Math.max(0, index + by))];
    if (next !== undefined) look({ sel: next.id });
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    ArrowDown: () => move(1),
    ArrowUp: () => move(-1),
    Home: () => move(-matters.length),
    End: () => move(matters.length),
    Enter: () => {
      if (selected?.to !== undefined) go(selected.to);
    },
    e: () => {
      if (selected !== undefined) putOff(selected.id);
    },
  });
}

function BandList(props: {
  band: Band;
  matters: readonly Matter[];
  current: readonly Matter[];
  selected: Matter | undefined;
  onPutOff: (id: string) => void;
}): ReactNode {
  const { band, matters, selected, onPutOff } = props;
  const { query } = usePlace();
  const isChosen = query.get("sel") === selected?.id;
  if (matters.length === 0) return null;
  const more = matters.length - MOST_IN_BAND;
  return (
    <>
      <h2 className="band">
        {BANDS[band]} <span>{matters.length}</span>
      </h2>
      <ol className={band === "you" ? "asks" : "asks tight"}>
        {matters.slice(0, MOST_IN_BAND).map((matter, index) => (
          <MatterRow
            key={matter.id}
            matter={matter}
            isSelected={matter.id === selected?.id}
            place={`${index}${matter.id === selected?.id && !isChosen ? ", first" : ""}`}
            isGone={!props.current.includes(matter)}
            onPutOff={() => onPutOff(matter.id)}
          />
        ))}
      </ol>
      {more > 0 ? <p className="meta">and {more} more, in Tasks</p> : null}
    </>
  );
}

function Summary({ matters }: { matters: readonly Matter[] }): ReactNode {
  const { state } = useFacts();
  const count = (band: Band): number => matters.filter((matter) => matter.band === band).length;
  const [you, stopped] = [count("you"), count("stopped")];
  const counts = state.data?.counts ?? {};
  const parts = [
    ...(stopped > 0 ? [`${stopped} ${stopped === 1 ? "has" : "have"} stopped`] : []),
    `${counts.running ?? 0} run`,
    `${(counts.pending ?? 0) + (counts.waiting ?? 0)} wait their turn`,
  ];
  return (
    <p className="fg2 t12 sum">
      {you === 0 ? null : (
        <>
          <b className="you">{you === 1 ? "1 agent waits for you" : `${you} agents wait for you`}</b>,{" "}
        </>
      )}
      {parts.join(", ")}
    </p>
  );
}

function LastHere(): ReactNode {
  const now = useNow();
  const [at, setAt] = useState(() => readKept<number>(SEEN_KEY));
  useEffect(() => {
    if (at === undefined) keep(SEEN_KEY, now.at);
    // Only the first visit of a browser marks itself.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, []);
  return (
    <>
      {at === undefined ? null : (
        <span className="fg2 t12 wide">
          last here {when(at, now.at)}, <Age at={at} suffix=" ago" />
        </span>
      )}
      <button
        type="button"
        className="btn wide"
        onClick={() => {
          keep(SEEN_KEY, now.at);
          setAt(now.at);
        }}
      >
        Mark as seen
      </button>
    </>
  );
}

function Empty({ hidden }: { hidden: number }): ReactNode {
  const { state } = useFacts();
  const { counts = {} } = state.data ?? {};
  const waiting = (counts.pending ?? 0) + (counts.waiting ?? 0);
  return (
    <p className="empty">
      <b>Nothing needs you.</b> {counts.running ?? 0} run, {waiting} wait
      {hidden === 0 ? "" : `, ${hidden} put off in this browser`}.
    </p>
  );
}

function KeyLine(): ReactNode {
  return (
    <p className="keys wide" aria-hidden="true">
      <Kbd>J</Kbd>
      <Kbd>K</Kbd> move <Kbd>↵</Kbd> open <Kbd>A</Kbd> allow once <Kbd>D</Kbd> deny <Kbd>E</Kbd> put off <Kbd>?</Kbd>{" "}
      all keys
    </p>
  );
}
