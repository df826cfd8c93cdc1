/** `heddle envelopes`: which envelopes there are here, what each allows, and the ways between them. */
import path from "node:path";
import { EXIT, visibleText, type HopGuard } from "@heddle/protocol";
import { heddleHome } from "@heddle/runtime/config";
import {
  checkEnvelopeFile,
  drawEnvelopes,
  envelopeFolders,
  readEnvelopes,
  viewEnvelope,
  viewEnvelopes,
  type EnvelopeView,
} from "@heddle/tools/envelopes";
import { usage, type ParsedArgs } from "../args.ts";
import type { Command, CommandContext } from "../command.ts";
import { toLine } from "../print/jsonl.ts";
import { openScreen } from "../print/screen.ts";

const VERBS = ["list", "show", "check", "graph"] as const;
type Verb = (typeof VERBS)[number];

export const envelopesCommand: Command = {
  usage: "envelopes [list | show NAME | check FILE | graph] [--json]",
  about:
    "An envelope is what an agent may do now. Lists those that can be named in this folder: built in, yours\n" +
    "(HEDDLE_HOME/envelopes/*.yaml) and the project's (.heddle/envelopes/*.yaml). check reads a file and says what is wrong\n" +
    "with it; graph draws the ways from one to another, for Mermaid.",
  subcommands: VERBS,
  options: [{ name: "json", help: "One JSON object per envelope" }],
  examples: [
    "heddle envelopes",
    "heddle envelopes show test",
    "heddle envelopes check docs.yaml",
    "heddle envelopes graph",
    'heddle exec --envelope review --ceiling edit "look at the last commit"',
  ],
  run,
};

async function run(args: ParsedArgs, { env, cwd }: CommandContext): Promise<number> {
  const [word = "list", name, ...more] = args.positionals;
  const verb = VERBS.find((known) => known === word);
  const needsName = verb === "show" || verb === "check";
  if (verb === undefined || more.length > 0 || needsName !== (name !== undefined)) throw usage(FORMS[verb ?? "list"]);
  const folders = envelopeFolders(heddleHome(env), cwd);
  const isJson = args.has("json");
  const out = openScreen(process.stdout, { isRaw: isJson });
  if (verb === "check" && name !== undefined) {
    const file = path.resolve(cwd, name);
    const view = viewEnvelope({ spec: checkEnvelopeFile(file, folders), source: "user", file });
    await out.write(isJson ? toLine(view) : visibleText(`${name}: the envelope "${view.id}" can be used\n`));
    return EXIT.ok;
  }
  const known = readEnvelopes(folders);
  const views = name === undefined ? viewEnvelopes(known) : [viewEnvelope(known.entry(name))];
  if (isJson) for (const view of views) await out.write(toLine(view));
  else await out.write(visibleText(textOf(verb, views)));
  return EXIT.ok;
}

const FORMS: Readonly<Record<Verb, string>> = {
  list: `write heddle envelopes ${VERBS.join(", ")}`,
  show: "write heddle envelopes show NAME; heddle envelopes lists them",
  check: "write heddle envelopes check FILE.yaml",
  graph: "write heddle envelopes graph",
};

function textOf(verb: Verb, views: readonly EnvelopeView[]): string {
  if (verb === "graph") return drawEnvelopes(views);
  if (verb === "show") return views.map((view) => `${lines(view).join("\n")}\n`).join("\n");
  return views.map(({ id, source, description }) => `${id.padEnd(12)}  ${source.padEnd(8)}  ${description}\n`).join("");
}

function guardText(guard: HopGuard): string {
  return guard.kind === "gate" ? `gate ${guard.name}` : `guard ${guard.kind}`;
}

function lines(view: EnvelopeView): readonly string[] {
  const { read, network, limits, exits } = view;
  const rows: readonly (readonly [string, string])[] = [
    ["envelope", `${view.id} (${view.file ?? view.source})`],
    ["", view.description],
    ["tools", view.tools.join(" ")],
    ["effects", view.effects.join(" ")],
    ["reads", read?.join(" ") ?? "everything"],
    ["writes", view.write.join(" ") || "nothing"],
    ["masked", view.masked.join(" ")],
    ["network", typeof network === "string" ? network : network.join(" ")],
    ["sandbox", view.sandbox],
    ["approval", view.approval],
    [
      "limits",
      Object.entries(limits)
        .map(([key, max]) => `${key} ${max}`)
        .join(", "),
    ],
    ...exits.map(({ to, by, approval, guards = [] }): readonly [string, string] => {
      const conditions = [approval, ...guards.map(guardText)].join(", ");
      return ["exit", `${to}: by ${by.join(", ")} (${conditions})`];
    }),
  ];
  return rows.filter(([, text]) => text !== "").map(([key, text]) => `${key.padEnd(9)} ${text}`);
}
