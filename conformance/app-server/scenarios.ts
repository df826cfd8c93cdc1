/** Every scenario that is played. */
import type { Scenario } from "./scenario.ts";
import { APPROVALS } from "./scenarios/approvals.ts";
import { GATES } from "./scenarios/gates.ts";
import { ATTACHMENTS } from "./scenarios/attachments.ts";
import { CONFIG } from "./scenarios/config.ts";
import { HOST } from "./scenarios/host.ts";
import { INSTRUCTIONS } from "./scenarios/instructions.ts";
import { BROUGHT } from "./scenarios/brought.ts";
import { ITEMS } from "./scenarios/items.ts";
import { MCP } from "./scenarios/mcp.ts";
import { PAGES } from "./scenarios/pages.ts";
import { PLUGINS } from "./scenarios/plugins.ts";
import { QUEUE } from "./scenarios/queue.ts";
import { QUESTIONS } from "./scenarios/questions.ts";
import { SEARCHES } from "./scenarios/searches.ts";
import { THREADS } from "./scenarios/threads.ts";
import { TOOLS } from "./scenarios/tools.ts";
import { TURNS } from "./scenarios/turns.ts";

export const SCENARIOS: readonly Scenario[] = [
  ...QUESTIONS,
  ...TURNS,
  ...APPROVALS,
  ...MCP,
  ...BROUGHT,
  ...SEARCHES,
  ...TOOLS,
  ...THREADS,
  ...PAGES,
  ...GATES,
  ...ITEMS,
  ...HOST,
  ...ATTACHMENTS,
  ...INSTRUCTIONS,
  ...QUEUE,
  ...CONFIG,
  ...PLUGINS,
];
