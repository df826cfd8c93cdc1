/** The frame of every page: the places, the state of the connection, who is logged in. */
import type { ServerAnswer, StateAnswer } from "@heddle/protocol/http";
import { useEffect, type ReactNode } from "react";
import { Icon, Link } from "./parts/base.tsx";
import { paused } from "./live/feed.ts";
import { link } from "./live/link.ts";
import { useStore } from "./live/store.ts";
import { clock, number } from "./words/figures.ts";

export interface ShellFacts {
  readonly server: ServerAnswer | undefined;
  readonly state: StateAnswer | undefined;
  /** How many matters wait for a person. */
  readonly matters: number;
}

export const PLACES = [
  { path: "/now", name: "Now", icon: "now", key: "n" },
  { path: "/tasks", name: "Tasks", icon: "tasks", key: "t" },
  { path: "/threads", name: "Threads", icon: "thread", key: "h" },
  { path: "/evidence", name: "Evidence", icon: "chain", key: "e" },
  { path: "/usage", name: "Usage", icon: "usage", key: "u" },
  { path: "/settings", name: "Settings", icon: "gear", key: "s" },
] as const;

interface ShellProps extends ShellFacts {
  readonly path: string;
  readonly isSlim: boolean;
  readonly onFind: () => void;
  readonly children: ReactNode;
}

export function Shell({ path, isSlim, onFind, children, ...facts }: ShellProps): ReactNode {
  const isStale = useStore(link).state === "lost";
  return (
    <div className={isSlim ? "app slim" : "app"} data-stale={isStale ? "true" : undefined}>
      <a className="skip" href="#main">
        Skip to the page
      </a>
      <Rail path={path} onFind={onFind} {...facts} />
      <div className="stage">
        <StaleLine />
        {children}
      </div>
      <BottomTabs
        path={path}
        matters={facts.matters}
        onFind={onFind}
        mayAdd={facts.server !== undefined && facts.server.principal.role !== "viewer"}
      />
    </div>
  );
}

function isAt(path: string, place: string): boolean {
  return path === place || path.startsWith(`${place}/`);
}

function Rail({ path, server, state, matters, onFind }: ShellFacts & { path: string; onFind: () => void }): ReactNode {
  const tasks = Object.values(state?.counts ?? {}).reduce((sum, count) => sum + (count ?? 0), 0);
  const mayAdd = server !== undefined && server.principal.role !== "viewer";
  const counts: Readonly<Record<string, number>> = { Now: matters, Tasks: tasks };
  return (
    <nav className="rail" aria-label="Heddle">
      <div className="mark">
        <Mark />
        <span className="w">Heddle</span>
      </div>
      <button type="button" className="find" onClick={onFind} aria-label="Search or do ⌘K">
        <Icon name="search" />
        <span className="w grow">Search or do</span>
        <kbd className="w" aria-hidden="true">
          ⌘K
        </kbd>
      </button>
      {PLACES.map(({ path: to, name, icon }) => (
        <Link key={to} to={to} isCurrent={isAt(path, to)} title={name}>
          <Icon name={icon} />
          <span className="w">{name}</span>
          <Count of={counts[name] ?? 0} isHot={name === "Now"} />
        </Link>
      ))}
      <div className="sep" />
      {!mayAdd ? null : (
        <Link to="/new" isCurrent={path === "/new"} title="New task">
          <Icon name="plus" />
          <span className="w grow">New task</span>
          <kbd className="w" aria-hidden="true">
            C
          </kbd>
        </Link>
      )}
      <Foot server={server} />
    </nav>
  );
}

function Count({ of, isHot }: { of: number; isHot: boolean }): ReactNode {
  if (of === 0) return null;
  return (
    <span className={isHot ? "n hot" : "n"}>
      {number(of)}
      {isHot ? <span className="vh"> need you</span> : null}
    </span>
  );
}

function Foot({ server }: { server: ServerAnswer | undefined }): ReactNode {
  const { state, position } = useStore(link);
  const words = state === "live" ? "live" : state === "lost" ? "no connection" : "connecting";
  return (
    <div className="foot">
      <span className={`live ${state}`} title={words}>
        <span className="w">
          {words}
          {position === undefined ? "" : `, event ${number(position)}`}
        </span>
      </span>
      {server === undefined ? null : (
        <>
          <span className="w">sandbox: {server.sandbox.level}</span>
          <span className="w">
            {server.principal.name === server.principal.role
              ? server.principal.name
              : `${server.principal.name}, ${server.principal.role}`}{" "}
            · {server.version}
          </span>
        </>
      )}
    </div>
  );
}

/** Stale data says so: reading goes on, acts wait. */
function StaleLine(): ReactNode {
  const { state, heardAt } = useStore(link);
  if (state !== "lost" || heardAt === undefined) return null;
  return (
    <p className="stale" role="status">
      <Icon name="clock" tone="say" />
      as of {clock(heardAt)}, reconnecting; nothing is sent until the server answers again
    </p>
  );
}

interface TabsProps {
  readonly path: string;
  readonly matters: number;
  readonly onFind: () => void;
  readonly mayAdd: boolean;
}

function BottomTabs({ path, matters, onFind, mayAdd }: TabsProps): ReactNode {
  return (
    <nav className="tabs-bottom" aria-label="Places">
      <Link to="/now" isCurrent={isAt(path, "/now")}>
        <Icon name="now" />
        Now
        {matters === 0 ? null : <span className="n">{matters}</span>}
      </Link>
      <Link to="/tasks" isCurrent={isAt(path, "/tasks")}>
        <Icon name="tasks" />
        Tasks
      </Link>
      {!mayAdd ? null : (
        <Link to="/new" isCurrent={path === "/new"}>
          <Icon name="plus" />
          New
        </Link>
      )}
      <Link to="/usage" isCurrent={isAt(path, "/usage")}>
        <Icon name="usage" />
        Usage
      </Link>
      <button type="button" onClick={onFind} aria-label="More places">
        <Icon name="more" />
        More
      </button>
    </nav>
  );
}

export function Mark(): ReactNode {
  return (
    <svg
      viewBox="0 0 20 20"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
      strokeLinecap="round"
      aria-hidden="true"
    >
      <path d="M5 2v16M15 2v16M10 2v4.6M10 13.4V18" opacity=".45" />
      <ellipse cx="10" cy="10" rx="2.2" ry="3.4" />
      <path d="M1.500 12.200c3-2.200 5.500-2.200 8.500-2.200s5.500 0 8.500-2.200" stroke="var(--you)" />
    </svg>
  );
}

/** The state first: that is what a tab shows of its title. */
export function useTitle(title: string): void {
  const { state } = useStore(link);
  const isPaused = useStore(paused);
  useEffect(() => {
    const mark = isPaused ? " (paused)" : state === "lost" ? " (no connection)" : "";
    document.title = `${title}${mark} · Heddle`;
  }, [title, state, isPaused]);
}
