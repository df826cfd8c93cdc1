/** Every invocation that both programs are put through, in the order in which they are played. */
import { CALL_CASES } from "./cases/calls.ts";
import { CLIENT_CASES } from "./cases/clients.ts";
import { ENVIRONMENT_CASES } from "./cases/environment.ts";
import { FAULT_CASES } from "./cases/faults.ts";
import { INSTRUCTION_CASES } from "./cases/instructions.ts";
import { ITEM_CASES } from "./cases/items.ts";
import { PROMPT_CASES } from "./cases/prompts.ts";
import { SETTING_CASES } from "./cases/settings.ts";
import { THREAD_CASES } from "./cases/threads.ts";
import { TOOL_CASES } from "./cases/tools.ts";
import { SEARCH_CASES, WIRE_CASES } from "./cases/wires.ts";
import type { ExecCase } from "./exec-case.ts";

export const EXEC_CASES: readonly ExecCase[] = [
  ...PROMPT_CASES,
  ...SETTING_CASES,
  ...INSTRUCTION_CASES,
  ...TOOL_CASES,
  ...FAULT_CASES,
  ...THREAD_CASES,
  ...ITEM_CASES,
  ...WIRE_CASES,
  ...CALL_CASES,
  ...ENVIRONMENT_CASES,
  ...CLIENT_CASES,
  ...SEARCH_CASES,
];
