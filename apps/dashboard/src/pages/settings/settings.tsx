/** What Heddle is set up as, and where each of it is changed. The page changes nothing that a file decides. */
import type { ReactNode } from "react";
import { useTitle } from "../../shell.tsx";
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
      </div>
    </main>
  );
}
