/** The tools for child threads as models are offered them; loaded only where threads may start others. */
import { CHILD_TOOLS, type ChildThreads, type ChildTool, type ChildToolset } from "../calls/child-threads.ts";
import type { Offer, ToolFamily } from "../calls/registry.ts";
import offers from "./child-offers.json" with { type: "json" };

/** Generated like `offers.json`. */
const OFFERS = offers as Readonly<Record<ChildTool, Offer>>;

/** As Claude Code names them; the others know the names of Codex. */
const CLAUDE_NAMES: Readonly<Record<ChildTool, string>> = {
  spawn_agent: "task",
  send_input: "send_message",
  wait_agent: "task_output",
  close_agent: "task_stop",
};

export function childToolset(children: ChildThreads): ChildToolset {
  const offeredAs = (family: ToolFamily, name: ChildTool): string =>
    family === "anthropic" ? CLAUDE_NAMES[name] : name;
  return (family) =>
    CHILD_TOOLS.map((name) => ({
      name,
      offeredAs: offeredAs(family, name),
      offer: OFFERS[name],
      load: async () => (await import("./child-threads.ts")).childTool(name, children),
    }));
}
