/** Takes the code out of the address before anything else runs, then draws. */
import { createRoot } from "react-dom/client";
import { App } from "./app.tsx";
import { reopenAfterSleep } from "./live/streams.ts";
import { startTicking } from "./live/link.ts";
import { asError } from "./live/resource.ts";
import { loginByCode, resumeSession } from "./live/session.ts";
import { replace } from "./router.ts";
import { applyPreferences } from "./preferences.ts";

const code = location.pathname === "/login" ? location.hash.slice(1) : "";
if (code !== "") replace("/login");
applyPreferences();
startTicking();
reopenAfterSleep();

const root = document.querySelector("#root");
if (root === null) throw new Error("the page has no root");
const draw = (problem?: string): void => createRoot(root).render(<App loginProblem={problem} />);

if (code === "") {
  resumeSession();
  draw();
} else {
  loginByCode(code).then(
    () => draw(),
    (error: unknown) => {
      resumeSession();
      draw(`${asError(error).message}. A code works once, for a minute: heddle dashboard makes another one.`);
    },
  );
}
