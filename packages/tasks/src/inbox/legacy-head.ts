/**
 * OpenLoom's pages begin with lines of `key: value` instead of front matter. These keys are read as front matter up to the
 * first line that is neither one of them, nor blank, nor the title.
 */
import { readFrontMatter } from "../spec/front-matter.ts";

const KEYS: Readonly<Record<string, string>> = {
  workspace: "workspace",
  session: "session",
  "session id": "session",
  session_id: "session",
  thread: "thread",
  abort: "abort",
  "abort session": "abort",
  abort_session: "abort",
  mode: "mode",
  agent: "agent",
  check_interval: "check_interval",
  check_interval_seconds: "check_interval_seconds",
};

const LINE = /^([a-z_]+(?: [a-z]+)?)\s*:\s*(.+?)\s*$/i;
const TITLE = /^# +(.*?)\s*#*\s*$/;
const TRUE = new Set(["1", "true", "yes", "on"]);

/** The page with front matter; unchanged when it has some already, or no such head. */
export function withFrontMatter(page: string): string {
  const { front, isUnclosed, body } = readFrontMatter(page);
  if (front !== undefined || isUnclosed) return page;
  const lines = body.text.split(/\r?\n/);
  const head: Record<string, string | boolean> = {};
  let title: string | undefined;
  let end = 0;
  for (const [index, line] of lines.entries()) {
    const [, word = "", value = ""] = LINE.exec(line) ?? [];
    const key = KEYS[word.toLowerCase()];
    const named: string | undefined = title === undefined ? TITLE.exec(line)?.[1] : undefined;
    if (key !== undefined && !(key in head))
      head[key] = key === "abort" ? TRUE.has(bare(value).toLowerCase()) : bare(value);
    else if (named !== undefined && named !== "") title = named;
    else if (line.trim() !== "") break;
    end = index + 1;
  }
  if (Object.keys(head).length === 0) return page;
  const table = JSON.stringify({ ...(title === undefined ? {} : { name: title }), ...head });
  // As many lines as before where they fit, so that later mistakes are reported with their lines.
  const padding = "\n".repeat(Math.max(0, end - 3));
  return `---\n${table}\n${padding}---\n${lines.slice(end).join("\n")}`;
}

function bare(value: string): string {
  return value.replace(/^(["'`])(.*)\1$/, "$2").trim();
}
