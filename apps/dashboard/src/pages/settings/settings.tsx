/** What Heddle is set up as, and where each of it is changed. The page changes nothing that a file decides. */
import type { ReactNode } from "react";
import { useTitle } from "../../shell.tsx";
import { ConfigCard } from "./config-card.tsx";
import { Doctor } from "./doctor.tsx";
import { Sinks } from "./sinks.tsx";
import { Tokens } from "./tokens.tsx";
import { ThisBrowser } from "./this-browser.tsx";

export function Settings(): ReactNode {
  useTitle("Settings");
  return (
    <main className="settings" aria-label="Settings" id="main">
      <header className="top">
        <h1>Settings</h1>
      </header>
      <div className="set-body">
        <ThisBrowser />
        <Doctor />
        <ConfigCard />
        <Sinks />
        <Tokens />
      </div>
    </main>
  );
}
