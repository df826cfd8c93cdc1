/** What is wrong with a spec by itself: tools that do not exist, tools beyond its effects, edges to nowhere. */
import { didYouMean, Effect } from "@heddle/protocol";
import messageOffers from "../builtin/message-offers.json" with { type: "json" };
import offers from "../builtin/offers.json" with { type: "json" };
import { CHILD_TOOLS } from "../calls/child-threads.ts";
import { BACK } from "../calls/hop-rules.ts";
import { isServerName } from "../mcp/names.ts";
import { WEB_SEARCH } from "./resolve.ts";
import { SYSTEM_ROOTS, type EnvelopeSpec } from "./spec.ts";

export interface SpecProblem {
  /** Where in the spec: a key, and the index in its list. */
  readonly path: readonly [string, number?];
  readonly message: string;
}

/** Of each tool that an envelope can name. */
const EFFECTS: ReadonlyMap<string, readonly Effect[]> = new Map<string, readonly Effect[]>([
  ...Object.entries({ ...offers, ...messageOffers }).map(
    ([name, { effects }]) => [name, effects.map((effect) => Effect.parse(effect))] as const,
  ),
  ...CHILD_TOOLS.map((name) => [name, ["spawn"]] as const),
  ["client.*", ["message"]],
  [WEB_SEARCH, ["net"]],
]);

export function specProblems(spec: EnvelopeSpec, isKnown: (id: string) => boolean): readonly SpecProblem[] {
  return [
    ...at(["id"], spec.id === BACK ? `"${BACK}" is how a hop goes back; choose another name` : undefined),
    ...spec.tools.flatMap((tool, index) => at(["tools", index], toolProblem(tool, spec))),
    ...at(["read"], withoutPrograms(spec)),
    ...spec.exits.flatMap(({ to }, index) => {
      const problem = isKnown(to) ? undefined : `there is no envelope ${JSON.stringify(to)} to go to`;
      return at(["exits", index], problem);
    }),
    ...at(
      ["exits"],
      spec.exits.some(({ to }) => to === spec.id) ? "an edge leads back to the same envelope" : undefined,
    ),
  ];
}

/** Even what starts a command lies in these folders. */
function withoutPrograms({ read, sandbox }: EnvelopeSpec): string | undefined {
  if (read === undefined) return undefined;
  if (sandbox === "off") return "without a sandbox nothing limits what programs read; leave `read` out";
  if (read.includes(SYSTEM_ROOTS)) return undefined;
  return `no program runs without "${SYSTEM_ROOTS}"; add it to the list`;
}

function toolProblem(tool: string, { effects, addsEffects }: EnvelopeSpec): string | undefined {
  // Its server tells the effects of each tool; what exceeds the ceiling is not offered.
  if (tool === "mcp.*" || isServerName(tool)) return undefined;
  const known = EFFECTS.get(tool);
  if (known === undefined) return `there is no tool ${JSON.stringify(tool)}${didYouMean(tool, [...EFFECTS.keys()])}`;
  const isOfOthers =
    addsEffects === true && (known.includes("spawn") || known.includes("message") || tool === WEB_SEARCH);
  const beyond = isOfOthers ? undefined : known.find((effect) => !effects.includes(effect));
  return beyond === undefined ? undefined : `${tool} has the effect "${beyond}", which is not among the effects`;
}

function at(path: SpecProblem["path"], message: string | undefined): SpecProblem[] {
  return message === undefined ? [] : [{ path, message }];
}
