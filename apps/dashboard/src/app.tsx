/** Which page an address is. */
import { Component, Suspense, useEffect, useState, type ReactNode } from "react";
import { FactsProvider, useFacts } from "./live/facts.tsx";
import { dropAll } from "./live/resource.ts";
import { session } from "./live/session.ts";
import { useStore } from "./live/store.ts";
import { Problem, Waiting } from "./parts/base.tsx";
import { mattersOf } from "./pages/now/matters.ts";
import { Login } from "./pages/login.tsx";
import { Now, usePutOff } from "./pages/now/now.tsx";
import { Settings } from "./pages/settings/settings.tsx";
import { replace, usePlace } from "./router.ts";
import { PLACES, Shell, useTitle } from "./shell.tsx";

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
  const [isFinding, setFinding] = useState(false);
  return (
    <Shell
      path={path}
      isSlim={/^\/(?:tasks|threads)\/./.test(path)}
      server={server.data}
      state={state.data}
      matters={matters.length}
      onFind={() => setFinding(!isFinding)}
    >
      <Guard key={path}>
        <Suspense fallback={<Waiting />}>
          <Page path={path} />
        </Suspense>
      </Guard>
    </Shell>
  );
}

function Page({ path }: { path: string }): ReactNode {
  if (path === "/now") return <Now />;
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
