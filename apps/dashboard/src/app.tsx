/** Which page an address is. */
import { Component, lazy, Suspense, useEffect, useRef, useState, type ReactNode } from "react";
import { FactsProvider, useFacts } from "./live/facts.tsx";
import { dropAll } from "./live/resource.ts";
import { session } from "./live/session.ts";
import { useStore } from "./live/store.ts";
import { Problem, Waiting } from "./parts/base.tsx";
import { mattersOf } from "./pages/now/matters.ts";
import { Login } from "./pages/login.tsx";
import { Now, usePutOff } from "./pages/now/now.tsx";
import { Tasks } from "./pages/tasks/tasks.tsx";
import { TaskPage } from "./pages/run/task-page.tsx";
import { ThreadPage } from "./pages/run/thread-page.tsx";
import { isTyping, useKeys } from "./parts/keys.ts";
import { KeyHelp } from "./parts/key-help.tsx";
import { copyAddress, Palette } from "./parts/palette.tsx";
import { preferences } from "./preferences.ts";
import { go, replace, usePlace } from "./router.ts";
import { PLACES, Shell, useTitle } from "./shell.tsx";

const Evidence = lazy(() => import("./pages/evidence/evidence.tsx").then((page) => ({ default: page.Evidence })));
const NewTask = lazy(() => import("./pages/new/new-task.tsx").then((page) => ({ default: page.NewTask })));
const Settings = lazy(() => import("./pages/settings/settings.tsx").then((page) => ({ default: page.Settings })));
const Threads = lazy(() => import("./pages/threads/threads.tsx").then((page) => ({ default: page.Threads })));
const Usage = lazy(() => import("./pages/usage/usage.tsx").then((page) => ({ default: page.Usage })));

export function App({ loginProblem }: { loginProblem: string | undefined }): ReactNode {
  const { client } = useStore(session);
  if (client === undefined) return <Login problem={loginProblem} />;
  return (
    <FactsProvider>
      <Frame />
    </FactsProvider>
  );
}

function Frame(): ReactNode {
  const { path } = usePlace();
  const { server, state, approvals, stopped } = useFacts();
  const { hidden } = usePutOff();
  useEffect(() => {
    if (path === "/" || path === "/login") replace("/now");
  }, [path]);
  const isKnown = state.data !== undefined && approvals.data !== undefined && stopped.data !== undefined;
  const matters = isKnown
    ? mattersOf({ state: state.data, approvals: approvals.data, stopped: stopped.data }).filter(
        ({ id }) => !hidden.has(id),
      )
    : [];
  const [over, setOver] = useState<"find" | "keys">();
  useGlobalKeys(setOver, server.data?.principal.role === "viewer");
  return (
    <Shell
      path={path}
      isSlim={/^\/(?:tasks|threads)\/./.test(path)}
      server={server.data}
      state={state.data}
      matters={matters.length}
      onFind={() => setOver("find")}
    >
      <Guard key={path}>
        <Suspense fallback={<Waiting />}>
          <Page path={path} />
        </Suspense>
      </Guard>
      {over === "find" ? <Palette onClose={() => setOver(undefined)} /> : null}
      {over === "keys" ? <KeyHelp onClose={() => setOver(undefined)} /> : null}
    </Shell>
  );
}

/** `g` and a letter within a second leads to a place. */
function useGlobalKeys(setOver: (over: "find" | "keys") => void, isViewer: boolean): void {
  const begun = useRef(0);
  const places = PLACES.map(({ key, path }) => [`g ${key}`, () => go(path)] as const);
  useKeys({ ...(isViewer ? {} : { c: () => go("/new") }), y: copyAddress, "?": () => setOver("keys") });
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() === "k" && (event.metaKey || event.ctrlKey)) {
        event.preventDefault();
        setOver("find");
      }
    };
    const pair = (event: KeyboardEvent): void => {
      if (preferences.get().areKeysOff || isTyping(event) || event.metaKey || event.ctrlKey || event.altKey) return;
      const found =
        Date.now() - begun.current < PAIR_MS ? places.find(([keys]) => keys === `g ${event.key}`) : undefined;
      begun.current = event.key === "g" ? Date.now() : 0;
      if (found === undefined) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      found[1]();
    };
    document.addEventListener("keydown", press);
    document.addEventListener("keydown", pair, { capture: true });
    return () => {
      document.removeEventListener("keydown", press);
      document.removeEventListener("keydown", pair, { capture: true });
    };
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, []);
}
const PAIR_MS = 1000;

function Page({ path }: { path: string }): ReactNode {
  const [, place, id] = path.split("/");
  if (place === "tasks" && id !== undefined && id !== "") return <TaskPage key={id} taskId={id} />;
  if (place === "threads" && id !== undefined && id !== "") return <ThreadPage key={id} threadId={id} />;
  if (path === "/now") return <Now />;
  if (path === "/tasks") return <Tasks />;
  if (path === "/threads") return <Threads />;
  if (path === "/evidence") return <Evidence />;
  if (path === "/usage") return <Usage />;
  if (path === "/new") return <NewTask />;
  if (path === "/settings" || path.startsWith("/settings/")) return <Settings />;
  if (path === "/" || path === "/login") return null;
  return <NotFound />;
}

function NotFound(): ReactNode {
  useTitle("Not found");
  return (
    <main className="lost" aria-label="Not found" id="main">
      <h1>There is nothing at this address</h1>
      <p className="fg2">
        What you look for may have been deleted. The places are on the left; {PLACES.length} of them.
      </p>
    </main>
  );
}

/** A page that fails says so, and the rest of the frame stays. */
class Guard extends Component<{ children: ReactNode }, { error: Error | undefined }> {
  override state: { error: Error | undefined } = { error: undefined };

  static getDerivedStateFromError(error: unknown): { error: Error } {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === undefined) return this.props.children;
    return (
      <main aria-label="This page has failed" id="main">
        <Problem error={error} onRetry={() => location.reload()} />
      </main>
    );
  }
}

session.subscribe(dropAll);
