/**
 * A stored run as parts of one document: the components of the page, drawn once. There is no script in it, what unfolds does
 * so by itself, and every style stands in the one sheet, so that a policy can name all that the document may use.
 */
import type { StoredRun } from "@heddle/protocol/http";
import { renderToStaticMarkup } from "react-dom/server.edge";
import { setServerTime } from "../live/link.ts";
import { line } from "../text/shown.ts";
import sheet from "../styles/still.css?inline";
import { Run } from "./run.tsx";

export interface StillPage {
  readonly title: string;
  readonly css: string;
  readonly body: string;
}

export interface RenderOptions {
  /** Lines of all diffs. */
  readonly maxDiffLines: number;
}

export function renderRun(run: StoredRun, { maxDiffLines }: RenderOptions): StillPage {
  setServerTime(run.at);
  const markup = renderToStaticMarkup(<Run run={run} maxDiffLines={maxDiffLines} />);
  const { body, rules } = withoutStyles(markup);
  return { title: `${line(run.task?.spec.name ?? run.thread?.name ?? "Run")} - Heddle`, css: sheet + rules, body };
}

/**
 * A policy that names a style sheet by its hash refuses styles of elements, so they become rules. What agents said cannot
 * look like one: a quotation mark in a text or an attribute is written as an entity.
 */
function withoutStyles(markup: string): { readonly body: string; readonly rules: string } {
  const names = new Map<string, string>();
  const body = markup.replaceAll(/ style="([^"]*)"/g, (_all, style: string) => {
    const name = names.get(style) ?? `y${names.size}`;
    names.set(style, name);
    return ` data-y="${name}"`;
  });
  const rules = [...names].map(([style, name]) => `[data-y=${name}]{${style}}`);
  return { body, rules: rules.join("") };
}
