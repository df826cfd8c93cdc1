/** What is wrong with a task, and what its checks say now, before it is added. Nothing is stored. */
import { LintAnswer, LintTaskBody } from "@heddle/protocol/http";
import { HeddleError, isHeddleError } from "@heddle/protocol";
import type { TaskSpec } from "@heddle/protocol/tasks";
import {
  hopProblem,
  lacksDeliver,
  proposeDeliver,
  readOrder,
  runChecks,
  SpecError,
  undeliverable,
  type Order,
} from "@heddle/tasks";
import type { z } from "zod";
import { takeTurn } from "../record/one-at-a-time.ts";
import { withinLimit } from "../record/time-limit.ts";
import { route, whileAsked, type HttpCall, type Route } from "./route.ts";
import { allowedSpec } from "./task-door.ts";

type Body = z.output<typeof LintTaskBody>;
type Answer = z.output<typeof LintAnswer>;

/** As an order of this door is read. */
export function orderOf({ spec, format, prompt, plan, workspace, thread }: Omit<Body, "run">): Omit<Order, "source"> {
  const written = prompt === undefined ? (spec ?? plan) : { goal: prompt };
  const isText = typeof written === "string";
  return {
    file: isText ? `order.${format === "markdown" ? "md" : "yaml"}` : "order.json",
    text: isText ? written : JSON.stringify(written),
    workspace,
    thread,
  };
}

async function lint(body: Body, call: HttpCall): Promise<Answer> {
  const { context, principal } = call;
  const isText = typeof body.spec === "string";
  try {
    const door = { ...context.taskDoor.door, defaultWorkspace: context.cwd };
    const { spec: given, warnings } = await readOrder(door, orderOf(body));
    const spec = await allowedSpec(given, { principal, cwd: context.cwd });
    await context.taskDoor.tasks.requireAgents(spec);
    const hops = await hopProblem(spec, context.home);
    if (hops !== undefined) return refused([{ message: hops.message, key: "hops" }], warnings);
    const deliver = lacksDeliver(spec) ? await proposeDeliver(spec) : undefined;
    return {
      isValid: true,
      problems: [],
      warnings: [...warnings, ...undeliverable(spec)],
      spec,
      ...(body.run === true ? { results: await dryRun(spec, call) } : {}),
      ...(deliver === undefined ? {} : { proposes: { deliver: [...deliver] } }),
    };
  } catch (error) {
    if (error instanceof SpecError) {
      // Of JSON the author knows no lines.
      return refused(
        error.problems.map(({ message, key, line, column }) => ({ message, key, ...(isText ? { line, column } : {}) })),
      );
    }
    if (isHeddleError(error) && error.code === "task.invalid") return refused([{ message: error.message, key: "" }]);
    // Of who is to carry it out: `runner.unknown` and its like.
    const [, key] = /^(runner|provider|model)\./.exec(isHeddleError(error) ? error.code : "") ?? [];
    if (key !== undefined && isHeddleError(error)) return refused([{ message: error.message, key }]);
    throw error;
  }
}

function refused(problems: Answer["problems"], warnings: readonly string[] = []): Answer {
  return { isValid: false, problems, warnings: [...warnings] };
}

/** A dry run is given up after this. */
const DRY_RUN_MS = 10 * 60_000;

async function dryRun(spec: TaskSpec, call: HttpCall): Promise<NonNullable<Answer["results"]>> {
  const { heddle, home } = call.context;
  using _turn = takeTurn(heddle.journal, "a run of checks");
  const refuse = (): HeddleError =>
    new HeddleError("task.invalid", "the checks took longer than ten minutes; run them with: heddle task lint --run");
  return withinLimit(whileAsked(call), { ms: DRY_RUN_MS, refuse }, async (signal) => [
    ...(await runChecks({ folder: spec.workspace, spec, home, signal })),
  ]);
}

export const TASK_LINT_ROUTES: readonly Route[] = [
  route({
    name: "lintTask",
    on: "POST /api/tasks/lint",
    summary: "Says what is wrong with a task, or what it would be; with run, what its checks say as things are now",
    scope: "write",
    body: LintTaskBody,
    answer: LintAnswer,
    handle: ({ body }, call) => lint(body, call),
  }),
];
